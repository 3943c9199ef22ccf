/**
 * A replay that stops between any two lines and goes on in a fresh session decides the same, and
 * its aggregates are the same rows.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileLogFormat, type LineScanner } from '../parsers/access/line-scanner.js';
import { LogClock } from '../parsers/time.js';
import { Aggregator, type AggregatorSnapshot } from '../src/aggregate/aggregator.js';
import { loadConf } from '../src/input/conf-files.js';
import type { LineFeed } from '../src/replay/line-feed.js';
import {
  discardUnheldKeys,
  restoreEngine,
  snapshotEngine,
  type EngineState,
} from '../src/replay/engine-state.js';
import type { GenerationInput } from '../src/replay/generations.js';
import type { PlainDecision } from '../src/replay/plain-pass.js';
import { ReplaySession } from '../src/replay/session.js';
import { formatOf, linesOf } from './support/captures.js';
import { traceDir, type TraceName } from './support/truth.js';

interface Line {
  readonly ms: number;
  readonly access: Buffer | null;
  readonly error: string;
}

interface Case {
  readonly name: TraceName;
  readonly log: string | null;
  /**
   * Requests with nothing to be told of them wait parked, and at least so many are decided without
   * an event; undefined where all are events.
   */
  readonly leastPlain?: number;
}

const FIELDS = [
  ...['loMs', 'hiMs', 'estMs', 'endMs', 'rules', 'httpStatus', 'logged', 'connLogged', 'pid'],
  ...['errorRank', 'anchorMilliReq', 'anchorSlot', 'flags', 'verdict', 'possible', 'source'],
] as const;
const SLOT_FIELDS = ['excessMilliReq', 'lowMilliReq', 'highMilliReq', 'outcome'] as const;

/** One capture, replayed with any number of stops. */
class StoppedReplay {
  readonly decisions: string[] = [];
  readonly rows: string[] = [];
  /** Requests decided without an event. */
  plain = 0;
  /** Parked requests in all states. */
  parked = 0;
  session: ReplaySession;
  aggregator: Aggregator;
  readonly #case: Case;
  readonly #confs: readonly GenerationInput[];
  readonly #scanner: LineScanner;
  #feed: LineFeed;

  constructor(of: Case, confs: readonly GenerationInput[], scanner: LineScanner) {
    this.#case = of;
    this.#confs = confs;
    this.#scanner = scanner;
    this.session = this.#newSession();
    this.aggregator = this.#newAggregator();
    this.#feed = this.session.accessFeed(scanner, null);
  }

  take(line: Line): void {
    this.session.advance(line.ms);
    if (line.access !== null) {
      const { fields } = this.#feed;
      fields.scanner.scan(line.access, 0, line.access.length);
      this.#feed.submit(line.access, fields.endMs(line.access));
      return;
    }
    const clock = new LogClock({ offsetMinutes: 0 });
    const { parsed, secondMs } = this.session.errorFeed.parse(line.error, clock);
    this.session.errorFeed.take(line.error, parsed, secondMs, 0);
  }

  finish(): void {
    this.session.finish();
    this.aggregator.flush();
  }

  /** Makes a state, and goes on as if nothing had been. */
  look(): void {
    this.parked += parkedIn(snapshotEngine(this.session));
  }

  /** Through JSON into a new session and a new aggregator. */
  stop(): void {
    const state = JSON.parse(JSON.stringify(snapshotEngine(this.session))) as EngineState;
    const open = JSON.parse(JSON.stringify(this.aggregator.snapshot())) as AggregatorSnapshot;
    this.parked += parkedIn(state);
    const { order } = this.#feed;
    this.session = this.#newSession();
    this.aggregator = this.#newAggregator();
    this.#feed = this.session.accessFeed(this.#scanner, null);
    this.#feed.order = order;
    restoreEngine(this.session, state);
    this.aggregator.restore(open);
    discardUnheldKeys(this.session, state);
    assertSame(snapshotEngine(this.session), state);
  }

  #newAggregator(): Aggregator {
    const sink = {
      row: (table: string, row: readonly unknown[]) =>
        void this.rows.push(JSON.stringify([table, ...row])),
    };
    return new Aggregator(this.session, { instance: 'test', sink, keysPerMinute: 3 });
  }

  #newSession(): ReplaySession {
    return new ReplaySession({
      generations: this.#confs,
      isAudit: false,
      latenessMs: 2000,
      usesConnection: this.#case.log === 'access.log',
      hasErrorLog: true,
      isErrorLogAlone: this.#case.log === null,
      errorLogCount: 2,
      details: this.#case.leastPlain !== undefined ? 'refused' : 'all',
      onDecision: (event) => {
        this.decisions.push(this.#describe(event));
        this.aggregator.decide(event);
      },
      ...(this.#case.leastPlain !== undefined
        ? {
            onPlain: (plain) => {
              this.plain++;
              this.decisions.push(this.#describePlain(plain));
              this.aggregator.decidePlain(plain);
            },
          }
        : {}),
      onUnmatchedLine: (line) => {
        this.decisions.push(JSON.stringify(line));
        this.aggregator.unmatchedLine(line);
      },
      onMark: (mark, ms) => void this.decisions.push(`${mark} ${ms}`),
      onNote: () => undefined,
    });
  }

  #describePlain(plain: PlainDecision): string {
    const { zone } = this.session.engine.rules[plain.rules]!.limits[0]!;
    const { keyId, ...rest } = plain;
    return JSON.stringify([rest, zone.keys.text(keyId), zone.memory.nodes]);
  }

  /** All that a decision says, in numbers, its keys in words. */
  #describe(event: number): string {
    const { engine, detailsOf } = this.session;
    const { pool } = engine;
    const limits = engine.rules[pool.rules[event]!]?.limits ?? [];
    const slots = limits.map((limit, i) => {
      const slot = event + i;
      const key = pool.keyId[slot]!;
      const isJudged = pool.slotState[slot] === 1;
      return [
        key < 0 ? key : limit.zone.keys.text(key),
        limit.zone.memory.nodes,
        ...(isJudged ? SLOT_FIELDS.map((field) => pool[field][slot]) : []),
      ];
    });
    return JSON.stringify([FIELDS.map((field) => pool[field][event]), slots, detailsOf.get(event)]);
  }
}

function parkedIn(state: EngineState): number {
  return state.waiting - Buffer.from(state.eventsAt, 'base64').length / 4;
}

/** Shows the first difference alone: lists of thousands take minutes to compare in full. */
function assertSame(found: object, expected: object): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a === b) return;
  let at = 0;
  while (a[at] === b[at]) at++;
  const from = Math.max(0, at - 200);
  assert.equal(a.slice(from, at + 200), b.slice(from, at + 200));
}

function confsOf(directory: string): GenerationInput[] {
  const names = readdirSync(directory)
    .filter((name) => /^nginx\.conf\.\d$/.test(name))
    .sort();
  return (names.length > 0 ? names : ['nginx.conf']).map((name) => ({
    conf: loadConf(join(directory, name)),
    sinceMs: null,
  }));
}

/** Both logs in order of time, the error log first. */
function readLines(of: Case): { lines: Line[]; scanner: LineScanner } {
  const directory = traceDir(of.name);
  const scanner = compileLogFormat(formatOf(directory, of.log ?? 'access.log'));
  const clock = new LogClock({ offsetMinutes: 0 });
  let latestMs = -Infinity;
  const errors = readFileSync(join(directory, 'error.log'), 'latin1').split('\n').slice(0, -1);
  const lines = errors.map((error): Line => {
    const ms = clock.toEpochMs(error.slice(0, 19));
    latestMs = Math.max(latestMs, Number.isNaN(ms) ? latestMs : ms);
    return { ms: latestMs, access: null, error };
  });
  latestMs = -Infinity;
  if (of.log !== null) {
    const probe = new StoppedReplay(of, confsOf(directory), scanner);
    const { fields } = probe.session.accessFeed(scanner, null);
    for (const access of linesOf(join(directory, of.log))) {
      fields.scanner.scan(access, 0, access.length);
      latestMs = Math.max(latestMs, fields.endMs(access));
      lines.push({ ms: latestMs, access: Buffer.from(access), error: '' });
    }
  }
  lines.sort((a, b) => a.ms - b.ms);
  return { lines, scanner };
}

const CASES: readonly Case[] = [
  { name: 'e_two_zones', log: 'access.log' },
  { name: 'g_mixed_2workers', log: 'access.log' },
  { name: 'g_mixed_2workers', log: 'combined.log' },
  { name: 'g_mixed_2workers', log: null },
  { name: 'j_slow_headers', log: 'access.log' },
  { name: 'k_starvation', log: 'access.log' },
  { name: 'p_reload', log: 'access.log' },
  { name: 'q_limit_conn', log: 'access.log' },
  { name: 'a_burst5_delay', log: 'access.log', leastPlain: 1 },
  { name: 'e_two_zones', log: 'access.log', leastPlain: 0 },
  { name: 'g_mixed_2workers', log: 'access.log', leastPlain: 500 },
  { name: 'j_slow_headers', log: 'access.log', leastPlain: 0 },
  { name: 'k_starvation', log: 'access.log', leastPlain: 300 },
  { name: 'p_reload', log: 'access.log', leastPlain: 20 },
];

for (const of of CASES) {
  const title = `${of.name}, ${of.log ?? 'error log alone'}${of.leastPlain === undefined ? '' : ', parked'}`;
  test(`${title}: stopped anywhere, the decisions are the same`, () => {
    const confs = confsOf(traceDir(of.name));
    const { lines, scanner } = readLines(of);
    const replay = (stops: ReadonlySet<number>, looks: ReadonlySet<number>): StoppedReplay => {
      const run = new StoppedReplay(of, confs, scanner);
      for (const [i, line] of lines.entries()) {
        if (looks.has(i)) run.look();
        if (stops.has(i)) run.stop();
        run.take(line);
      }
      if (stops.has(lines.length)) run.stop();
      run.finish();
      return run;
    };
    const none = new Set<number>();
    const whole = replay(none, none);
    assert.ok(whole.decisions.length > 20);
    const places = fc.uniqueArray(fc.nat({ max: lines.length }), { minLength: 1, maxLength: 8 });
    let parked = 0;
    fc.assert(
      fc.property(places, places, (stops, looks) => {
        const stopped = replay(new Set(stops), new Set(looks));
        assertSame(stopped.decisions, whole.decisions);
        assertSame(stopped.rows.sort(), [...whole.rows].sort());
        assert.equal(stopped.plain, whole.plain);
        parked += stopped.parked;
      }),
      {
        seed: 1,
        numRuns: 6,
        examples: [
          [[0], [0]],
          [[lines.length - 1, 0], [1]],
          [[lines.length], [lines.length - 1]],
        ],
      },
    );
    if (of.leastPlain === undefined) return;
    assert.ok(parked > 20, `only ${parked} requests were parked`);
    assert.ok(whole.plain >= of.leastPlain, `only ${whole.plain} were decided without an event`);
  });
}
