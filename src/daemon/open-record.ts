/**
 * The record of the spool that is being filled: its number, the steps since the newest state, and
 * whether it is to have a state itself.
 *
 * Units: bytes, milliseconds of the process's clock, on which nothing that is stored depends but when
 * states are written. Not here: its rows (record-rows.ts), its files (spool.ts).
 */
import { hostname } from 'node:os';
import type { Checkpoint } from '../store/write-ahead.js';
import type { Place } from './spool.js';
import type { TailRange } from './tail-state.js';
import { rangesOf, type StepRange } from './tail-steps.js';

/**
 * A state is written when this many times its bytes have been read since the one before, so that
 * writing states costs little beside reading, and reading again after a crash is short.
 */
const READ_PER_STATE = 8;
/** And when this has passed: logs are not kept for ever. */
const LONGEST_WITHOUT_STATE_MS = 120_000;
/** And when each record would have to name more ranges than this. */
const MOST_RANGES = 500;
/** And this, where lines can't be read again: they are handed on from a state that holds them. */
const LONGEST_LIVE_MS = 10_000;
/** There each record has a state: a busy server's is dear, so it may take a share of the time only. */
const LIVE_STATE_SHARE = 1 / 20;

export class OpenRecord {
  /** Of the last record that was closed. */
  #sequence = 0;
  /** Of the last state, and the steps since then, those of no record yet included. */
  #base = 0;
  #ranges: StepRange[] = [];
  #steps = 0;
  #bytesSinceState = 0;
  /** A record begins with a state: what there was before it need not be read again. */
  #stateBytes = 0;
  #stateAtMs = -Infinity;
  #stateTookMs = 0;

  /** Of the last record that was closed. */
  get closedSequence(): number {
    return this.#sequence;
  }

  get sequence(): number {
    return this.#sequence + 1;
  }

  /** No step is in no record. */
  get isEmpty(): boolean {
    return this.#steps === 0;
  }

  /** The newest state is that of all steps. */
  get isStateNew(): boolean {
    return this.#ranges.length === 0;
  }

  /** A step since the newest state took lines that can't be read again. */
  get hasLive(): boolean {
    return this.#ranges.some(({ isLive }) => isLive);
  }

  /** Goes on behind a checkpoint. */
  takeUp({ sequence, state }: Checkpoint): void {
    this.#sequence = sequence;
    this.#base = sequence;
    this.#stateBytes = state.length;
    this.#stateAtMs = performance.now();
  }

  /** Notes a step. @param untilMs null where it drained the replay */
  note(read: readonly Omit<TailRange, 'untilMs'>[], untilMs: number | null): void {
    this.#ranges.push(...rangesOf(read, { untilMs, sequence: this.sequence, step: this.#steps }));
    this.#steps++;
    for (const { fromByte, toByte } of read) this.#bytesSinceState += toByte - fromByte;
  }

  /** @param receivesLive whether lines come that can't be read again */
  isStateDue(receivesLive: boolean): boolean {
    return (
      this.#ranges.length >= MOST_RANGES ||
      this.#bytesSinceState >= READ_PER_STATE * this.#stateBytes ||
      performance.now() - this.#stateAtMs >=
        (receivesLive ? LONGEST_LIVE_MS : LONGEST_WITHOUT_STATE_MS)
    );
  }

  /** Whether a record with live lines can wait, since the states of those before took long. */
  get canWait(): boolean {
    const waitMs = Math.min(LONGEST_LIVE_MS, this.#stateTookMs / LIVE_STATE_SHARE);
    return this.hasLive && performance.now() - this.#stateAtMs < waitMs;
  }

  /** @param checkpoint of its state, where it has one */
  place(checkpoint: Checkpoint | undefined): Place {
    return {
      version: 1,
      sequence: this.sequence,
      base: checkpoint === undefined ? this.#base : this.sequence,
      ranges: [...this.#ranges],
      startedBy: `${hostname()}, process ${process.pid}`,
      sources: checkpoint?.sources ?? [],
      logTimeMs: checkpoint?.logTimeMs ?? 0,
    };
  }

  /** It is closed: what it took is no longer open. */
  closed(sequence: number): void {
    this.#sequence = sequence;
    this.#steps = 0;
  }

  /** It was closed with this state, which took so long to make and write. */
  stateWritten({ sequence, state }: Checkpoint, tookMs: number): void {
    this.#stateTookMs = tookMs;
    this.#base = sequence;
    this.#ranges = [];
    this.#bytesSinceState = 0;
    this.#stateBytes = state.length;
    this.#stateAtMs = performance.now();
  }
}
