/**
 * What the replay cannot evaluate (a key that the log does not tell, a server): the finding
 * `not_derivable`, in force from the first request after it was noticed to the last one.
 *
 * Times are epoch milliseconds.
 */
import type { RowSink } from './rows.js';

export interface Note {
  readonly text: string;
  /** null until a request has shown the time. */
  readonly sinceMs: number | null;
}

export class Notes {
  /** By text, since when. */
  #notes = new Map<string, number | null>();

  add(text: string): void {
    if (!this.#notes.has(text)) this.#notes.set(text, null);
  }

  /** Hands over the notes that are new. @param ms now */
  emitNew(sink: RowSink, instance: string, ms: number): void {
    for (const [text, sinceMs] of this.#notes) {
      if (sinceMs === null) this.#emit(sink, instance, text, ms, ms);
    }
  }

  /** Hands over all notes, in force until now. */
  emitAll(sink: RowSink, instance: string, ms: number): void {
    for (const [text, sinceMs] of this.#notes) this.#emit(sink, instance, text, sinceMs ?? ms, ms);
  }

  snapshot(): Note[] {
    return Array.from(this.#notes, ([text, sinceMs]) => ({ text, sinceMs }));
  }

  /** Keeps what was noted already; what is known from before goes on from its own begin. */
  restore(notes: readonly Note[]): void {
    for (const { text, sinceMs } of notes) this.#notes.set(text, sinceMs);
  }

  #emit(sink: RowSink, instance: string, text: string, sinceMs: number, untilMs: number): void {
    this.#notes.set(text, sinceMs);
    sink.row('findings', [instance, 'not_derivable', text, text, sinceMs, untilMs, '']);
  }
}
