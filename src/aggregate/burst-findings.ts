/**
 * Whether the log shows the burst that the configuration says: the finding `burst_differs`.
 *
 * ngx_http_limit_req_lookup() rejects with burst < excess <= burst + 1 request, as what is stored
 * never is above the burst; so each logged rejection names its burst. Where limits of several bursts
 * share a zone, another one may have stored more: then the upper bound is that of the largest.
 *
 * Excess in thousandths of a request, bursts in requests, times in epoch milliseconds.
 */
import type { LimitRow } from '../replay/limit-table.js';
import type { RowSink } from './rows.js';

/** So many rejections that say the same are no accident. */
const ENOUGH = 3;
/** Other bursts told apart for one limit. */
const MOST_IMPLIED = 8;

export interface ImpliedBurst {
  readonly subject: string;
  readonly configured: number;
  readonly implied: number;
  readonly sinceMs: number;
  untilMs: number;
  rejects: number;
  isNew: boolean;
}

export class BurstFindings {
  #bySubject = new Map<string, ImpliedBurst[]>();

  /** Compares a rejection's logged excess with its limit. */
  note(
    subject: string,
    limit: LimitRow,
    largestBurstMilliReq: number,
    excessMilliReq: number,
    ms: number,
  ): void {
    const { burstMilliReq } = limit;
    const isAbove = excessMilliReq > Math.max(burstMilliReq, largestBurstMilliReq) + 1000;
    if (!isAbove && excessMilliReq > burstMilliReq) return;
    const configured = burstMilliReq / 1000;
    const implied = Math.max(0, Math.ceil(excessMilliReq / 1000) - 1);
    const list = this.#bySubject.get(subject) ?? [];
    const known = list.find((one) => one.implied === implied && one.configured === configured);
    if (known !== undefined) {
      known.rejects++;
      known.untilMs = Math.max(known.untilMs, ms);
      known.isNew = true;
    } else if (list.length < MOST_IMPLIED) {
      const times = { sinceMs: ms, untilMs: ms };
      list.push({ subject, configured, implied, ...times, rejects: 1, isNew: true });
      this.#bySubject.set(subject, list);
    }
  }

  /** Whether enough rejections of this limit contradict its burst. */
  differs(subject: string, limit: LimitRow): boolean {
    if (this.#bySubject.size === 0) return false;
    const list = this.#bySubject.get(subject);
    if (list === undefined) return false;
    const configured = limit.burstMilliReq / 1000;
    return list.some((one) => one.configured === configured && one.rejects >= ENOUGH);
  }

  /** Hands over what is found, and what has gone on since. */
  emit(sink: RowSink, instance: string): void {
    for (const found of this.#all()) {
      if (!found.isNew || found.rejects < ENOUGH) continue;
      found.isNew = false;
      const { subject, configured, implied, sinceMs, untilMs, rejects } = found;
      const message = `configuration says burst=${configured}, the log says ${implied}`;
      const details = JSON.stringify({ configured, implied, rejects });
      sink.row('findings', [
        instance,
        'burst_differs',
        subject,
        message,
        sinceMs,
        untilMs,
        details,
      ]);
    }
  }

  snapshot(): ImpliedBurst[] {
    return this.#all().map((found) => ({ ...found }));
  }

  restore(list: readonly ImpliedBurst[]): void {
    this.#bySubject = new Map();
    for (const found of list) {
      const known = this.#bySubject.get(found.subject) ?? [];
      known.push({ ...found });
      this.#bySubject.set(found.subject, known);
    }
  }

  #all(): ImpliedBurst[] {
    return [...this.#bySubject.values()].flat();
  }
}
