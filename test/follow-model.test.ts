/**
 * The follower against a model: random sequences of what writers, rotation and operators do to a
 * log, with polls and restarts in between.
 *
 * Guaranteed: every complete line once, in the order of writing. Weakened, and only there: lines
 * that no poll read before their last file was removed may be missing, and so may those written
 * between the copy and the cut of copytruncate. None ever comes twice.
 *
 * Not in the model, for what happened then cannot be told: a file removed after it was cut since
 * the last poll; and, where files begin with the same line, rotated ones that are removed.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { FollowedLog } from '../src/input/follow.js';
import type { KnownLog, OnLine } from '../src/input/follow-progress.js';
import { ReadBuffer } from '../src/input/follow-source.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const GRACE_MS = 30_000;
const ROTATED_KEPT = 5;
const ALL_KEPT = 100;

/** A line as the model remembers it. */
interface Line {
  readonly text: string;
  mayBeLost: boolean;
}

/** The content of one file, whatever its name is. */
interface Content {
  readonly lines: Line[];
  /** The follower has it open, and reads it whatever becomes of its names. */
  isOpen: boolean;
  /** It was cut since the last poll. */
  isCut: boolean;
}

function emptyContent(): Content {
  return { lines: [], isOpen: false, isCut: false };
}

interface Rotated {
  readonly content: Content;
  readonly isGzip: boolean;
}

class World {
  readonly path: string;
  readonly written: Line[] = [];
  readonly given: string[] = [];
  #log: FollowedLog | undefined;
  #known: KnownLog[] = [];
  #nowMs = 1_000_000;
  #fd = -1;
  /** What the writer writes to, and what lies under the path. */
  #writing: Content = emptyContent();
  #underPath: Content | undefined;
  readonly #rotated: Rotated[] = [];
  /** Without a name, and only there as long as the follower has them open. */
  readonly #removed: Content[] = [];
  #fragment = '';
  #serial = 0;
  readonly #buffer: ReadBuffer;
  readonly #firstLine: string | undefined;
  readonly #kept: number;

  /** @param firstLine with which every file begins, followed by another line */
  constructor(folder: string, blockBytes: number, firstLine?: string) {
    this.path = join(folder, 'access.log');
    this.#buffer = new ReadBuffer(blockBytes);
    this.#firstLine = firstLine;
    this.#kept = firstLine === undefined ? ROTATED_KEPT : ALL_KEPT;
    this.start();
  }

  start(): void {
    this.#log ??= new FollowedLog(this.path, {
      known: this.#known,
      withRotated: true,
      clock: () => this.#nowMs,
      graceMs: GRACE_MS,
      buffer: this.#buffer,
    });
  }

  async stop(): Promise<void> {
    if (this.#log === undefined) return;
    // As through a checkpoint.
    this.#known = JSON.parse(JSON.stringify(this.#log.progress())) as KnownLog[];
    await this.#log.close();
    this.#log = undefined;
    for (const content of this.#contents()) content.isOpen = false;
    for (const content of this.#removed.splice(0)) this.#lose(content);
  }

  async poll(mostBytes: number): Promise<void> {
    if (this.#log === undefined) return;
    await this.#log.poll(this.#onLine, { mostBytes });
    for (const content of this.#contents()) {
      content.isOpen = true;
      content.isCut = false;
    }
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  write(lines: number, length: number): void {
    this.#openWriter();
    this.#endFragment();
    let text = '';
    for (let i = 0; i < lines; i++) text += `${this.#nextLine(length)}\n`;
    fs.writeSync(this.#fd, text);
  }

  /** Half a line; the other half comes before anything else is written. */
  writeHalf(length: number): void {
    this.#openWriter();
    this.#endFragment();
    const text = this.#nextLine(length, false);
    const cut = Math.floor(text.length / 2);
    this.#fragment = text.slice(cut);
    fs.writeSync(this.#fd, text.slice(0, cut));
  }

  /** USR1. */
  reopen(): void {
    this.#endFragment();
    if (this.#fd >= 0) fs.closeSync(this.#fd);
    this.#fd = -1;
    this.#openWriter();
  }

  rotate(withCreate: boolean, reopens: boolean): void {
    if (this.#underPath === undefined) return;
    if (this.#writing !== this.#underPath) this.reopen();
    this.#shift();
    fs.renameSync(this.path, `${this.path}.1`);
    this.#rotated.unshift({ content: this.#underPath, isGzip: false });
    this.#underPath = undefined;
    if (withCreate) this.#create();
    if (reopens) this.reopen();
  }

  /** @param linesBetween written between the copy and the cut; -1: nothing happens in between */
  async copyTruncate(linesBetween: number, pollsBetween: boolean): Promise<void> {
    if (this.#underPath === undefined) return;
    if (this.#writing !== this.#underPath) this.reopen();
    this.#endFragment();
    this.#shift();
    fs.copyFileSync(this.path, `${this.path}.1`);
    // The follower need not have the copy open: it holds nothing that was not there before.
    const copy = { ...emptyContent(), lines: [...this.#underPath.lines] };
    this.#rotated.unshift({ content: copy, isGzip: false });
    if (linesBetween > 0) {
      const before = this.written.length;
      this.write(linesBetween, 10);
      for (const line of this.written.slice(before)) line.mayBeLost = true;
    }
    if (pollsBetween) await this.poll(Infinity);
    fs.truncateSync(this.path);
    const after: Content = { lines: [], isOpen: this.#underPath.isOpen, isCut: true };
    this.#underPath = after;
    this.#writing = after;
  }

  delete(): void {
    if (this.#underPath === undefined || this.#underPath.isCut) return;
    if (this.#writing !== this.#underPath) this.reopen();
    this.#endFragment();
    fs.unlinkSync(this.path);
    this.#lose(this.#underPath);
    this.#underPath = undefined;
    this.reopen();
  }

  gzip(which: number): void {
    const i = which % ROTATED_KEPT;
    const file = this.#rotated[i];
    if (file === undefined || file.isGzip || file.content === this.#writing) return;
    const from = `${this.path}.${i + 1}`;
    // The real one keeps the time of the file to the nanosecond, which Node cannot.
    execFileSync('gzip', [from]);
    this.#rotated[i] = { content: file.content, isGzip: true };
  }

  /** Everything is written out and read. */
  async settle(): Promise<void> {
    this.reopen();
    this.start();
    for (let quiet = 0; quiet < 2;) quiet = (await this.#log!.poll(this.#onLine)) ? 0 : quiet + 1;
    assert.equal(this.#log!.lagBytes, 0);
    await this.#log!.close();
    fs.closeSync(this.#fd);
  }

  readonly #onLine: OnLine = (bytes, start, end, offset, nextOffset) => {
    assert.equal(nextOffset - offset, end - start + 1);
    this.given.push(Buffer.from(bytes.subarray(start, end)).toString('latin1'));
  };

  #contents(): Content[] {
    const named = [this.#writing, this.#underPath, ...this.#rotated.map(({ content }) => content)];
    return named.filter((content) => content !== undefined);
  }

  #openWriter(): void {
    if (this.#fd >= 0) return;
    if (this.#underPath === undefined) this.#create();
    this.#fd = fs.openSync(this.path, 'a');
    this.#writing = this.#underPath!;
  }

  #create(): void {
    fs.writeFileSync(this.path, '');
    this.#underPath = emptyContent();
  }

  #endFragment(): void {
    if (this.#fragment === '') return;
    fs.writeSync(this.#fd, `${this.#fragment}\n`);
    this.#fragment = '';
  }

  #nextLine(length: number, mayBeFirst = true): string {
    const serial = `${this.#serial++} ${'x'.repeat(length)}`;
    const isFirst = mayBeFirst && this.#writing.lines.length === 0;
    const texts = isFirst && this.#firstLine !== undefined ? [this.#firstLine, serial] : [serial];
    for (const text of texts) {
      const line = { text, mayBeLost: false };
      this.written.push(line);
      this.#writing.lines.push(line);
    }
    return texts.join('\n');
  }

  /** A file is about to go: what of it no poll has read, and no open descriptor holds, may be lost. */
  #lose(content: Content): void {
    if (content.isOpen) {
      content.isOpen = false;
      this.#removed.push(content);
      return;
    }
    for (const line of content.lines) line.mayBeLost = true;
  }

  #shift(): void {
    const last = this.#rotated[this.#kept - 1];
    if (last !== undefined) {
      this.#rotated.pop();
      fs.unlinkSync(this.#nameOf(this.#kept, last));
      this.#lose(last.content);
    }
    for (let i = this.#rotated.length; i >= 1; i--) {
      const file = this.#rotated[i - 1]!;
      fs.renameSync(this.#nameOf(i, file), this.#nameOf(i + 1, file));
    }
  }

  #nameOf(n: number, file: Rotated): string {
    return `${this.path}.${n}${file.isGzip ? '.gz' : ''}`;
  }
}

/** What was given is what was written, but for lines that may be lost. */
function assertGiven(world: World): void {
  // Lines can be alike: all places in what was given that the lines so far can have led to.
  let reached = new Set([0]);
  for (const line of world.written) {
    const next = new Set<number>();
    for (const at of reached) {
      if (world.given[at] === line.text) next.add(at + 1);
      if (line.mayBeLost) next.add(at);
    }
    reached = next;
    if (reached.size === 0) assert.fail(`lost or out of order: ${line.text}\n${story(world)}`);
  }
  if (!reached.has(world.given.length)) assert.fail(`more was given\n${story(world)}`);
}

function story(world: World): string {
  const written = world.written.map((line) => line.text + (line.mayBeLost ? '?' : ''));
  return `written: ${written.join(', ')}\ngiven: ${world.given.join(', ')}`;
}

type Step = readonly [name: string, run: (world: World) => void | Promise<void>];

const writing: fc.Arbitrary<Step>[] = [
  fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(1, 30, 300, 5000))
    .map(([n, length]) => [`write ${n} of ${length}`, (w): void => w.write(n, length)] as const),
  fc
    .constantFrom(4, 200)
    .map((length) => [`write half of ${length}`, (w): void => w.writeHalf(length)] as const),
];
const following: fc.Arbitrary<Step>[] = [
  fc
    .constantFrom(Infinity, Infinity, 1, 100)
    .map((most) => [`poll ${most}`, (w): Promise<void> => w.poll(most)] as const),
  fc.constant(['stop', (w): Promise<void> => w.stop()] as const),
  fc.constant(['start', (w): void => w.start()] as const),
  fc
    .constantFrom(1000, GRACE_MS)
    .map((ms) => [`advance ${ms}`, (w): void => w.advance(ms)] as const),
];
const rotating: fc.Arbitrary<Step>[] = [
  fc
    .tuple(fc.boolean(), fc.boolean())
    .map(
      ([create, reopen]) =>
        [
          `rotate${create ? ', create' : ''}${reopen ? ', reopen' : ''}`,
          (w): void => w.rotate(create, reopen),
        ] as const,
    ),
  fc.constant(['reopen', (w): void => w.reopen()] as const),
  fc.constant(['copytruncate', (w): Promise<void> => w.copyTruncate(0, false)] as const),
  fc.nat(ROTATED_KEPT - 1).map((i) => [`gzip ${i + 1}`, (w): void => w.gzip(i)] as const),
];
const losing: fc.Arbitrary<Step>[] = [
  fc.constant(['delete', (w): void => w.delete()] as const),
  fc
    .tuple(fc.integer({ min: 0, max: 2 }), fc.boolean())
    .map(
      ([lines, polls]) =>
        [
          `copytruncate with ${lines} lines${polls ? ' and a poll' : ''} in between`,
          (w): Promise<void> => w.copyTruncate(lines, polls),
        ] as const,
    ),
];

async function runSteps(
  t: Cleanup,
  steps: readonly Step[],
  blockBytes: number,
  firstLine?: string,
): Promise<World> {
  const world = new World(makeTempDir(t), blockBytes, firstLine);
  for (const [, run] of steps) await run(world);
  await world.settle();
  assertGiven(world);
  return world;
}

function stepsOf(kinds: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<Step[]> {
  const named = fc.oneof(...kinds).map((step) => {
    const shown = [...step] as unknown as Step;
    Object.defineProperty(shown, fc.toStringMethod, { value: () => step[0] });
    return shown;
  });
  return fc.array(named, { maxLength: 40, size: 'max' });
}

const blockBytes = fc.constantFrom(16, 1 << 18);

test('rotation, copytruncate, gzip, restarts and downtime: every line once, in order', async (t) => {
  const steps = stepsOf([...writing, ...writing, ...following, ...following, ...rotating]);
  await fc.assert(
    fc.asyncProperty(steps, blockBytes, async (list, block) => {
      await runSteps(t, list, block);
    }),
    { numRuns: 150 },
  );
});

test('the same with files that all begin with one line', async (t) => {
  const steps = stepsOf([...writing, ...writing, ...following, ...rotating]);
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      await runSteps(t, list, 1 << 18, 'the same line');
    }),
    { numRuns: 60 },
  );
});

test('with removal and writing between copy and cut: only those lines are lost, none is twice', async (t) => {
  const steps = stepsOf([...writing, ...writing, ...following, ...rotating, ...losing]);
  await fc.assert(
    fc.asyncProperty(steps, blockBytes, async (list, block) => {
      await runSteps(t, list, block);
    }),
    { numRuns: 100 },
  );
});
