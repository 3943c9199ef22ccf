/**
 * ngx_current_msec of one worker, rebuilt from its debug lines.
 *
 * The clock moves once per turn of the event loop, in ngx_epoll_process_events(), right after the
 * line "epoll timer". How far it moved is only said at the end of the turn ("timer delta"), and
 * its absolute value only where a timer is set. So moments are noted as turns, and turned into
 * milliseconds once the whole log has been read.
 */
export class TurnClock {
  /** Milliseconds since turn 0, for each turn whose end has been seen. */
  readonly #sinceFirstMs: number[] = [0];
  readonly #anchors: { readonly turn: number; readonly monoMs: number }[] = [];
  #turn = 0;

  /** The present turn, to be given to monoMs() later. */
  get turn(): number {
    return this.#turn;
  }

  /** "epoll timer": the clock is about to move. */
  beginTurn(): void {
    this.#turn += 1;
  }

  /** "timer delta: D": by how much the clock moved when this turn began. */
  endTurn(deltaMs: number): void {
    if (this.#turn === 0) return;
    this.#sinceFirstMs[this.#turn] = (this.#sinceFirstMs[this.#turn - 1] ?? NaN) + deltaMs;
  }

  /** "event timer add: fd: D:ABS" was seen in this turn: the clock shows ABS − D. */
  anchor(monoMs: number): void {
    this.#anchors.push({ turn: this.#turn, monoMs });
  }

  /**
   * The clock during a turn, or undefined when the log ended before that turn did.
   *
   * @throws Error when no timer was ever set, or when two timers disagree about the clock
   */
  monoMs(turn: number): number | undefined {
    const sinceFirstMs = this.#sinceFirstMs[turn];
    return sinceFirstMs === undefined ? undefined : this.#firstMs() + sinceFirstMs;
  }

  #firstMs(): number {
    this.#cachedFirstMs ??= this.#computeFirstMs();
    return this.#cachedFirstMs;
  }
  #cachedFirstMs: number | undefined;

  #computeFirstMs(): number {
    let firstMs: number | undefined;
    for (const { turn, monoMs } of this.#anchors) {
      const sinceFirstMs = this.#sinceFirstMs[turn];
      if (sinceFirstMs === undefined) continue;
      firstMs ??= monoMs - sinceFirstMs;
      if (firstMs !== monoMs - sinceFirstMs) {
        throw new Error(
          `the worker's clock contradicts itself in turn ${turn}: a timer says ${monoMs} ms, ` +
            `the turns add up to ${firstMs + sinceFirstMs} ms`,
        );
      }
    }
    if (firstMs === undefined) throw new Error('no timer was set, so the clock is not known');
    return firstMs;
  }
}
