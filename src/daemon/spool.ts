/**
 * What the daemon has counted and the store may not have yet, on disk, in order.
 *
 * Per sequence number up to three files: `N.rows` (what to insert), now and then `N.state` (the whole
 * state of the replay after it), and last, since it makes the other two count, `N.place`: which bytes
 * have been read since the newest state, and up to which log time they were handed on. A place
 * without a state of its own leads there from the newest state before it: those bytes are read again
 * and handed on in the same steps, which gives the same rows and the same state.
 *
 * `N.rows` goes when the store has taken it. The newest place and its state stay: from them the
 * daemon goes on, store or no store.
 *
 * Units: bytes on disk. Not here: sending (spool-sender.ts).
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { ROW_COLUMNS } from '../aggregate/rows.js';
import type { SourceProgress } from '../store/write-ahead.js';
import { DurableFolder, unreadable } from './spool-files.js';
import { lockSpool } from './spool-lock.js';
import type { StepRange } from './tail-steps.js';

const compress = promisify<Buffer, { level: number }, Buffer>(gzip);
const decompress = promisify<Buffer, Buffer>(gunzip);
const GZIP_LEVEL = 1;
const NAME = /^(\d{12})\.(rows|state|place)$/;

/** Where the reading of the logs stood when a record was closed. */
export interface Place {
  readonly version: 1;
  readonly sequence: number;
  /** Sequence of the newest state, 0 for the state before anything: its own where it has one. */
  readonly base: number;
  /** Every step since the state before this record, its own included: what its intent names. */
  readonly ranges: readonly StepRange[];
  readonly startedBy: string;
  /** Of the state, where it has one. */
  readonly sources: readonly SourceProgress[];
  readonly logTimeMs: number;
}

/** Rows by table, in the order in which they are inserted. */
export interface TableRows {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

export interface SpoolRecord {
  readonly place: Place;
  readonly tables: readonly TableRows[];
  /** Packed; undefined where the record has none. */
  readonly state: Buffer | undefined;
}

type Part = 'rows' | 'state' | 'place';

/** By sequence, what the rows of records since the newest state were, in short. */
type Digests = Readonly<Record<number, string>>;

/** A place as it lies on disk. */
type StoredPlace = Place & { readonly digests?: Digests };

export class Spool {
  readonly #folder: DurableFolder;
  #maxBytes: number;
  readonly #unlock: () => void;
  /** Sizes of the files that are there, by sequence. */
  readonly #sizes = new Map<number, Map<Part, number>>();
  #newest: Place | undefined;
  #digests: Digests = {};
  #bytes = 0;
  #isRefused = false;
  #wake: (() => void)[] = [];
  /** The last record as it was appended, so that one that is sent at once is not read again. */
  #last: SpoolRecord | undefined;

  private constructor(folder: DurableFolder, maxBytes: number, unlock: () => void) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
    this.#unlock = unlock;
  }

  /** @throws InputError (io): in use, not to be written, or damaged */
  static async open(path: string, maxBytes: number): Promise<Spool> {
    const folder = await DurableFolder.open(path);
    const spool = new Spool(folder, maxBytes, lockSpool(path));
    try {
      await spool.#load();
    } catch (error) {
      spool.close();
      throw error;
    }
    return spool;
  }

  get path(): string {
    return this.#folder.path;
  }

  /** The place to go on from; undefined when nothing was ever counted. */
  get newest(): Place | undefined {
    return this.#newest;
  }

  /** The oldest record that the store may not have. */
  get first(): number | undefined {
    for (const [sequence, parts] of this.#sizes) if (isWaiting(parts)) return sequence;
    return undefined;
  }

  /** Records that the store may not have. */
  get waiting(): number {
    return [...this.#sizes.values()].filter(isWaiting).length;
  }

  /** Bytes of these records. */
  get waitingBytes(): number {
    let bytes = 0;
    for (const parts of this.#sizes.values()) {
      if (isWaiting(parts)) for (const size of parts.values()) bytes += size;
    }
    return bytes;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#maxBytes && this.first !== undefined;
  }

  /** Another bound; what is there already stays. */
  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes;
    this.#changed();
  }

  /** The disk did not take the last record. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Puts a record at the end; when it returns, the record survives any crash. */
  async append(place: Place, tables: readonly TableRows[], state?: Buffer): Promise<void> {
    try {
      await this.#append(place, tables, state);
      this.#isRefused = false;
    } catch (error) {
      this.#isRefused = true;
      throw error;
    }
  }

  async #append(place: Place, tables: readonly TableRows[], state?: Buffer): Promise<void> {
    const { sequence } = place;
    const text = textOf(tables);
    await this.#write(sequence, 'rows', await compress(text, { level: GZIP_LEVEL }));
    if (state !== undefined) await this.#write(sequence, 'state', state);
    const earlier = place.base === sequence ? {} : this.#digests;
    const digests = { ...earlier, [sequence]: digestOf(text) };
    const stored: StoredPlace = { ...place, digests };
    await this.#write(sequence, 'place', Buffer.from(JSON.stringify(stored)));
    this.#newest = place;
    this.#digests = digests;
    this.#last = { place, tables, state };
    await this.#tidy();
    this.#changed();
  }

  /** Begins with a state that is in the store already. Only for a spool that is empty. */
  async adopt(place: Place, state: Buffer): Promise<void> {
    await this.#write(place.sequence, 'state', state);
    await this.#write(place.sequence, 'place', Buffer.from(JSON.stringify(place)));
    this.#newest = place;
  }

  /**
   * Whether steps that were done again made the rows that they made the first time; true where
   * nothing is known of those, or tables have got other columns since.
   */
  isAsBefore(sequence: number, tables: readonly TableRows[]): boolean {
    const before = this.#digests[sequence];
    if (before === undefined) return true;
    const now = digestOf(textOf(tables));
    return before === now || before.split(' ')[0] !== now.split(' ')[0];
  }

  async read(sequence: number): Promise<SpoolRecord> {
    if (this.#last?.place.sequence === sequence) return this.#last;
    const { place } = placeIn(await this.#folder.read(nameOf(sequence, 'place')));
    const name = nameOf(sequence, 'rows');
    let tables: readonly TableRows[];
    try {
      const text = (await decompress(await this.#folder.read(name))).toString();
      ({ tables } = JSON.parse(text) as { tables: readonly TableRows[] });
    } catch (error) {
      throw unreadable(`${this.path}/${name}`, 'something else', error);
    }
    return { place, tables, state: await this.state(sequence) };
  }

  async state(sequence: number): Promise<Buffer | undefined> {
    const has = this.#sizes.get(sequence)?.has('state') === true;
    return has ? this.#folder.read(nameOf(sequence, 'state')) : undefined;
  }

  /** The store has a record. */
  async sent(sequence: number): Promise<void> {
    if (this.#last?.place.sequence === sequence) this.#last = undefined;
    await this.#remove(sequence, 'rows');
    await this.#tidy();
    this.#changed();
  }

  /** Forgets everything: the store knows better. */
  async clear(): Promise<void> {
    this.#newest = undefined;
    this.#digests = {};
    this.#last = undefined;
    // Places first: without them the rest does not count.
    for (const part of ['place', 'rows', 'state'] as const) {
      for (const sequence of [...this.#sizes.keys()]) await this.#remove(sequence, part);
    }
  }

  /** When something was appended, sent or woken. */
  async change(): Promise<void> {
    await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  wake(): void {
    this.#changed();
  }

  close(): void {
    this.#unlock();
  }

  async #load(): Promise<void> {
    for (const [name, size] of await this.#folder.list()) {
      const [, digits, part] = NAME.exec(name) ?? [];
      if (digits !== undefined) this.#note(Number(digits), part as Part, size);
    }
    const newest = [...this.#sizes].findLast(([, parts]) => parts.has('place'))?.[0];
    // Files of a record that was not finished.
    for (const [sequence, parts] of [...this.#sizes]) {
      if (newest !== undefined && sequence <= newest) continue;
      for (const part of [...parts.keys()]) await this.#remove(sequence, part);
    }
    if (newest === undefined) return;
    const name = nameOf(newest, 'place');
    try {
      const { place, digests } = placeIn(await this.#folder.read(name));
      this.#newest = place;
      this.#digests = digests;
    } catch (error) {
      throw unreadable(`${this.path}/${name}`, 'something else', error);
    }
    await this.#tidy();
  }

  async #write(sequence: number, part: Part, bytes: Buffer): Promise<void> {
    this.#note(sequence, part, await this.#folder.write(nameOf(sequence, part), bytes));
  }

  #note(sequence: number, part: Part, size: number): void {
    let parts = this.#sizes.get(sequence);
    if (parts === undefined) this.#sizes.set(sequence, (parts = new Map<Part, number>()));
    this.#bytes += size - (parts.get(part) ?? 0);
    parts.set(part, size);
  }

  async #remove(sequence: number, part: Part): Promise<void> {
    const parts = this.#sizes.get(sequence);
    const size = parts?.get(part);
    if (parts === undefined || size === undefined) return;
    await this.#folder.remove(nameOf(sequence, part));
    parts.delete(part);
    this.#bytes -= size;
    if (parts.size === 0) this.#sizes.delete(sequence);
  }

  /** Removes what neither the store nor a restart needs any more. */
  async #tidy(): Promise<void> {
    const { sequence: newest, base } = this.#newest!;
    for (const [sequence, parts] of [...this.#sizes]) {
      if (parts.has('rows')) continue;
      if (sequence !== newest) await this.#remove(sequence, 'place');
      if (sequence !== base) await this.#remove(sequence, 'state');
    }
  }

  #changed(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const resolve of waiting) resolve();
  }
}

function placeIn(bytes: Buffer): { readonly place: Place; readonly digests: Digests } {
  const { digests = {}, ...place } = JSON.parse(bytes.toString()) as StoredPlace;
  return { place, digests };
}

/** What `N.rows` holds. */
function textOf(tables: readonly TableRows[]): Buffer {
  return Buffer.from(JSON.stringify({ version: 1, tables }));
}

/** Of the columns that there are, and of the rows. */
function digestOf(text: Buffer): string {
  const columns = createHash('sha256').update(JSON.stringify(ROW_COLUMNS)).digest('hex');
  const rows = createHash('sha256').update(text).digest('hex');
  return `${columns.slice(0, 16)} ${rows.slice(0, 32)}`;
}

/** The place is written last; before that a record does not count. */
function isWaiting(parts: ReadonlyMap<Part, number>): boolean {
  return parts.has('rows') && parts.has('place');
}

function nameOf(sequence: number, part: Part): string {
  return `${String(sequence).padStart(12, '0')}.${part}`;
}
