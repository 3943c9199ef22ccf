/**
 * Exactly once: an intent before the blocks, a checkpoint after them.
 *
 * begin() writes down which bytes of which sources are about to be counted, under a sequence number.
 * The blocks of that sequence carry tokens made of it, so that after a crash the same bytes give the
 * same blocks, and the engine drops those that it has. commit() stores the state of the model with
 * the positions reached; from then on the intent is done. A checkpoint is one compressed text in
 * parts, valid when all parts of one write are there, and never overwritten by the write after it
 * (the tables have two slots).
 *
 * An import commits every intent. The daemon, whose state is large while requests wait, commits now
 * and then: each of its intents names all bytes since the last checkpoint, so that the newest one,
 * which is the only one kept, leads there again.
 *
 * Units: bytes and epoch milliseconds. Not here: what the state means to the model.
 */
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { EXIT, InputError } from '../errors.js';
import type { Engine } from './engine.js';

export interface SourceRange {
  readonly sourceId: string;
  readonly fromByte: number;
  readonly toByte: number;
  /** Of an import: the path it was read under, and how many first bytes its identity is the hash of. */
  readonly name?: string;
  readonly headLength?: number;
  /** Lines of an error log that stand for requests, no access log being known. */
  readonly isAlone?: true;
}

/** What one step of an import is about to count. */
export interface Intent {
  readonly instance: string;
  /** 1 for the first, then one more than the last checkpoint's. */
  readonly sequence: number;
  readonly ranges: readonly SourceRange[];
  /** Who: host and pid, for messages. */
  readonly startedBy: string;
}

/** How far a log file has been read, and how to know it again. */
export interface SourceProgress {
  readonly sourceId: string;
  readonly headHash: string;
  readonly headLength: number;
  /** '' where the content before the offset was never seen again: the head alone tells then. */
  readonly tailHash: string;
  readonly offset: number;
  readonly lines: number;
  readonly name: string;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly complete: boolean;
  /** What the log is; undefined where whoever wrote the progress did not say. */
  readonly kind?: 'access' | 'error';
  /** Of an access log: the path of the access_log that it is, null when that is not known. */
  readonly target?: string | null;
  /** Of an error log: its lines were counted as requests. */
  readonly isAlone?: true;
}

/** Somebody else writes to the same instance. */
export class ContestedError extends InputError {}

/** A checkpoint whose sources and state are one compressed text, as packState() makes it. */
export interface PackedCheckpoint extends Omit<Checkpoint, 'state'> {
  readonly packed: Buffer;
}

export interface Checkpoint {
  readonly instance: string;
  readonly sequence: number;
  readonly sources: readonly SourceProgress[];
  /** The model's state, opaque here. */
  readonly state: string;
  /** Time of the newest request counted. */
  readonly logTimeMs: number;
}

/** Base64 characters per row of a checkpoint. */
const CHUNK_LENGTH = 1 << 20;
/** Level 3 halves the time of level 6 for a tenth more bytes. */
const GZIP_LEVEL = 3;

const compress = promisify<Buffer, { level: number }, Buffer>(gzip);
const decompress = promisify<Buffer, Buffer>(gunzip);

/** The token of the n-th block of a table in a sequence. */
export function blockToken(intent: Intent, table: string, n: number): string {
  return `${intent.instance}/${intent.sequence}/${table}/${n}`;
}

export async function packState(
  sources: readonly SourceProgress[],
  state: string,
): Promise<Buffer> {
  return compress(Buffer.from(`${JSON.stringify(sources)}\n${state}`), { level: GZIP_LEVEL });
}

export async function unpackState(
  packed: Buffer,
): Promise<{ readonly sources: readonly SourceProgress[]; readonly state: string }> {
  const text = (await decompress(packed)).toString();
  const cut = text.indexOf('\n');
  return {
    sources: JSON.parse(text.slice(0, cut)) as SourceProgress[],
    state: text.slice(cut + 1),
  };
}

export class WriteAhead {
  readonly #engine: Engine;
  /** The sources as last committed here, so that only what changed is written to their table. */
  readonly #written = new Map<string, string>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /**
   * Writes an intent down. Beginning a pending intent again (same sequence, same ranges) is no
   * error: that is how a crash is resumed. An intent may follow a pending one, whose bytes it has to
   * name as well.
   *
   * @throws ContestedError (io) when another process writes to the same instance
   */
  async begin(intent: Intent): Promise<void> {
    const pending = await this.pendingIntent(intent.instance);
    if (pending !== undefined && goesOnFrom(pending, intent)) return;
    const done = pending?.sequence ?? (await this.#lastSequence(intent.instance));
    if (intent.sequence !== done + 1) {
      if (pending !== undefined) throw contested(this.#engine.where, pending);
      throw new Error(`intent ${intent.sequence} after checkpoint ${done} of ${intent.instance}`);
    }
    await this.#engine.insert(
      'intents',
      ['instance', 'sequence', 'ranges', 'started_by'],
      [[intent.instance, intent.sequence, JSON.stringify(intent.ranges), intent.startedBy]],
      blockToken(intent, 'intents', 0),
    );
    // Of two that began at the same moment the token let one through: read who it was.
    const winner = await this.pendingIntent(intent.instance);
    if (winner === undefined || !goesOnFrom(winner, intent)) {
      throw contested(this.#engine.where, winner ?? intent);
    }
  }

  /**
   * Stores the state that an intent led to, and with it ends the intent.
   *
   * Call it when every block of the intent has been inserted.
   */
  async commit(intent: Intent, checkpoint: Checkpoint): Promise<void> {
    const { state, ...rest } = checkpoint;
    await this.commitPacked(intent, {
      ...rest,
      packed: await packState(checkpoint.sources, state),
    });
  }

  /** As commit(), of a state that is packed already. */
  async commitPacked(intent: Intent, checkpoint: PackedCheckpoint): Promise<void> {
    if (checkpoint.sequence !== intent.sequence || checkpoint.instance !== intent.instance) {
      throw new Error(`checkpoint ${checkpoint.sequence} does not end intent ${intent.sequence}`);
    }
    await this.#writeSources(checkpoint);
    const packed = checkpoint.packed.toString('base64');
    const parts = Math.ceil(packed.length / CHUNK_LENGTH);
    const writeId = randomUUID();
    const { instance, sequence, logTimeMs } = checkpoint;
    const rows = Array.from({ length: parts }, (_, part) => {
      const chunk = packed.slice(part * CHUNK_LENGTH, (part + 1) * CHUNK_LENGTH);
      return [instance, sequence % 2, part, parts, sequence, writeId, logTimeMs, chunk];
    });
    const columns = ['instance', 'slot', 'part', 'parts', 'sequence', 'write_id', 'log_time_ms'];
    const token = `${blockToken(intent, 'checkpoints', 0)}/${writeId}`;
    await this.#engine.insert('checkpoints', [...columns, 'chunk'], rows, token);
  }

  /** The intent that was begun and not committed, if there is one. */
  async pendingIntent(instance: string): Promise<Intent | undefined> {
    const last = await this.#lastIntent(instance);
    return last === undefined || last.sequence <= (await this.#lastSequence(instance))
      ? undefined
      : last;
  }

  /** Whether this very intent was begun and, it or one that followed it, committed. */
  async isCommitted(intent: Intent): Promise<boolean> {
    const last = await this.#lastIntent(intent.instance);
    if (last === undefined || !goesOnFrom(last, intent)) return false;
    return (await this.#lastSequence(intent.instance)) >= intent.sequence;
  }

  async #lastIntent(instance: string): Promise<Intent | undefined> {
    const [row] = await this.#engine.rows<{ sequence: number; ranges: string; startedBy: string }>(
      `SELECT sequence, ranges, started_by AS startedBy FROM intents
       WHERE instance = {instance:String} ORDER BY sequence DESC LIMIT 1`,
      { instance },
    );
    if (row === undefined) return undefined;
    const ranges = JSON.parse(row.ranges) as SourceRange[];
    return { instance, sequence: row.sequence, ranges, startedBy: row.startedBy };
  }

  /** The last whole checkpoint of an instance, if there is one. */
  async checkpoint(instance: string): Promise<Checkpoint | undefined> {
    const last = await this.#lastWhole(instance);
    if (last === undefined) return undefined;
    const chunks = await this.#engine.rows<{ chunk: string }>(
      `SELECT any(chunk) AS chunk FROM checkpoints
       WHERE instance = {instance:String} AND write_id = {writeId:String}
       GROUP BY part ORDER BY part`,
      { instance, writeId: last.writeId },
    );
    const packed = Buffer.from(chunks.map(({ chunk }) => chunk).join(''), 'base64');
    const { sequence, logTimeMs } = last;
    return { instance, sequence, ...(await unpackState(packed)), logTimeMs };
  }

  /** Sequence of the newest intent or checkpoint; 0 when there is none. */
  async newestSequence(instance: string): Promise<number> {
    return (await this.pendingIntent(instance))?.sequence ?? (await this.#lastSequence(instance));
  }

  async #lastSequence(instance: string): Promise<number> {
    return (await this.#lastWhole(instance))?.sequence ?? 0;
  }

  async #lastWhole(
    instance: string,
  ): Promise<{ sequence: number; writeId: string; logTimeMs: number } | undefined> {
    const [row] = await this.#engine.rows<{ sequence: number; writeId: string; logTimeMs: number }>(
      `SELECT sequence, write_id AS writeId, any(log_time_ms) AS logTimeMs FROM checkpoints
       WHERE instance = {instance:String}
       GROUP BY sequence, write_id HAVING uniqExact(part) = any(parts)
       ORDER BY sequence DESC, max(written) DESC LIMIT 1`,
      { instance },
    );
    return row;
  }

  /** For people and reports; positions are taken from the checkpoint alone. */
  async #writeSources(checkpoint: Omit<Checkpoint, 'state'>): Promise<void> {
    const { instance, sequence } = checkpoint;
    const changed = checkpoint.sources.filter((source) => {
      const key = `${instance}/${source.sourceId}`;
      const text = JSON.stringify(source);
      if (this.#written.get(key) === text) return false;
      this.#written.set(key, text);
      return true;
    });
    if (changed.length === 0) return;
    const columns = ['instance', 'source_id', 'sequence', 'name', 'offset', 'lines'];
    await this.#engine.insert(
      'sources',
      [...columns, 'first_ms', 'last_ms', 'complete'],
      changed.map((s) => [
        ...[instance, s.sourceId, sequence, s.name, s.offset, s.lines],
        ...[s.firstMs, s.lastMs, s.complete],
      ]),
      `${instance}/${sequence}/sources/${randomUUID()}`,
    );
  }
}

/**
 * Whether an intent is another one or has followed it, by the bytes that they count; who does it makes
 * no difference.
 */
function goesOnFrom(later: Intent, intent: Intent): boolean {
  if (later.sequence < intent.sequence) return false;
  const begin =
    later.sequence === intent.sequence ? later.ranges : later.ranges.slice(0, intent.ranges.length);
  return JSON.stringify(begin) === JSON.stringify(intent.ranges);
}

function contested(where: string, other: Intent): ContestedError {
  return new ContestedError(
    `${where}: expected to be the only writer of instance ${JSON.stringify(other.instance)}, ` +
      `found step ${other.sequence} begun by ${other.startedBy}\n` +
      '  Wait for it, or give each nginx its own --instance.',
    EXIT.io,
  );
}
