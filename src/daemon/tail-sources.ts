/**
 * The sources being read, each with its queue and its lane, and the merge of their lines by time.
 *
 * A step hands on what is older than a moment that follows from log times alone; what is newer waits
 * in the queues, since another log may still bring something older. So the replay sees lines in the
 * order in which an import of the same logs would, however the bytes arrived.
 *
 * Not here: reading (tail-reader.ts), what the lines mean (../pipeline/lanes.ts).
 */
import { AccessLane, ErrorLane, runLanes, type LineSink } from '../pipeline/lanes.js';
import type { LineFeed } from '../replay/line-feed.js';
import type { ReplaySession } from '../replay/session.js';
import { LineQueue } from './line-queue.js';
import { LateClock, type ZoneFinder } from './log-zone.js';
import type { LogList } from './tail-log.js';
import type { TailSourceState } from './tail-state.js';

export interface TailSource {
  /** Path of its log. */
  readonly name: string;
  readonly sourceId: string;
  readonly isLive: boolean;
  readonly queue: LineQueue;
  readonly lane: AccessLane | ErrorLane;
  /** undefined for an error log. */
  readonly feed: LineFeed | undefined;
}

export class TailSources {
  readonly #session: ReplaySession;
  readonly #sink: LineSink;
  readonly #logs: LogList;
  readonly #zone: ZoneFinder;
  readonly #sources = new Map<string, TailSource>();

  constructor(session: ReplaySession, sink: LineSink, logs: LogList, zone: ZoneFinder) {
    this.#session = session;
    this.#sink = sink;
    this.#logs = logs;
    this.#zone = zone;
  }

  get(sourceId: string): TailSource | undefined {
    return this.#sources.get(sourceId);
  }

  /** The sources of a log, oldest first. */
  of(name: string): TailSource[] {
    return [...this.#sources.values()].filter((source) => source.name === name);
  }

  /**
   * A source of a log that lines have come from for the first time.
   *
   * @param isLive whether its lines can't be read again: they are handed on one step later
   */
  add(name: string, sourceId: string, offset: number, isLive = false): TailSource {
    const log = this.#logs.get(name)!;
    const number = this.#logs.numberOf(name);
    const queue = new LineQueue(offset, isLive);
    const clock = new LateClock(this.#zone);
    const common = [name, queue, this.#session, this.#sink, log.isPrefixed] as const;
    let source: TailSource;
    if (log.kind === 'error') {
      const lane = new ErrorLane(...common, clock, number);
      source = { name, sourceId, isLive, queue, lane, feed: undefined };
    } else {
      const feed = this.#session.accessFeed(log.file.scanner, log.file.servers);
      const lane = new AccessLane(...common, feed, clock, number);
      source = { name, sourceId, isLive, queue, lane, feed };
    }
    this.#sources.set(sourceId, source);
    return source;
  }

  /** Hands on all lines up to this moment, in order of time, error logs first. */
  async handOn(untilMs: number): Promise<void> {
    // Not even looked at: the zone of their times may not be known yet.
    if (untilMs <= 0) return;
    const inOrder = this.#inOrder();
    for (const { lane } of inOrder) {
      if (lane.timeMs === Infinity) lane.timeMs = lane.lastMs;
      await lane.begin();
    }
    await runLanes(
      inOrder.map(({ lane }) => lane),
      () => undefined,
      undefined,
      untilMs,
    );
    for (const { lane } of inOrder) {
      // Tells what it has counted; its line waits on.
      const { timeMs } = lane;
      if (timeMs !== Infinity) lane.end();
      lane.timeMs = timeMs;
    }
  }

  /** The state has been stored: what it holds of live lines may be handed on. */
  showLive(): void {
    for (const { queue } of this.#sources.values()) queue.show();
  }

  /** Forgets sources that have given all their lines and will give no more. */
  drop(isOver: (sourceId: string) => boolean): void {
    for (const [id, { lane, isLive }] of this.#sources) {
      if (!isLive && lane.timeMs === Infinity && isOver(id)) this.#sources.delete(id);
    }
  }

  snapshot(): TailSourceState[] {
    return [...this.#sources.values()].map(({ name, sourceId, isLive, queue, lane, feed }) => ({
      name,
      sourceId,
      isLive,
      ...queue.left(lane.timeMs !== Infinity),
      reachedMs: Number.isFinite(lane.lastMs) ? lane.lastMs : null,
      order: feed?.order ?? 0,
    }));
  }

  restore(states: readonly TailSourceState[]): void {
    for (const { name, sourceId, isLive, offset, lines, reachedMs, order } of states) {
      if (this.#logs.get(name) === undefined) continue;
      const { queue, lane, feed } = this.add(name, sourceId, offset, isLive === true);
      queue.refill(lines);
      queue.show();
      lane.lastMs = reachedMs ?? -Infinity;
      lane.timeMs = Infinity;
      if (feed !== undefined) feed.order = order;
    }
  }

  #inOrder(): TailSource[] {
    const all = [...this.#sources.values()];
    return this.#logs.inOrder.flatMap(({ path }) => all.filter(({ name }) => name === path));
  }
}
