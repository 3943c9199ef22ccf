/**
 * `limitlens replay`: every request in the order in which nginx decided them, as JSON lines, as one
 * JSON array, or as a table for people.
 */
import { SOURCE_WORDS } from '../attribution/source.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { runLanes, type LineSink } from '../pipeline/lanes.js';
import { missingFieldNotes } from '../pipeline/missing-fields.js';
import { makeLanes, openLogs, zoneOf } from '../pipeline/open-logs.js';
import { openStdin, type Stdin } from '../pipeline/stdin.js';
import { AccessFields } from '../replay/access-fields.js';
import type { GenerationInput } from '../replay/generations.js';
import { FLAG } from '../replay/event-flags.js';
import { ReplaySession } from '../replay/session.js';
import { OUTCOME, OUTCOME_WORDS, STATUS_WORDS } from '../replay/status.js';
import type { Output } from './output.js';
import { REPLAY_SHAPES, type ReplayedRequest, type ReplayedZone } from './replay-shapes.js';

export interface ReplayOptions {
  readonly conf: readonly string[];
  readonly errorLog: readonly string[];
  readonly audit: boolean;
  readonly latenessMs: number;
  readonly timezone?: string;
  readonly logFormat?: string;
  readonly allLogs: boolean;
  readonly chunkBytes?: number;
  readonly format: 'jsonl' | 'json' | 'text';
}

/** Lines are written in blocks: one write per request would cost more than the replay. */
const BLOCK_CHARACTERS = 1 << 16;

/**
 * Replays the files and writes the requests to `output`.
 *
 * @returns how many lines could not be parsed
 */
export async function replay(
  files: readonly string[],
  options: ReplayOptions,
  output: Output,
): Promise<number> {
  checkTimezone(options.timezone);
  const generations = readConfs(options.conf);
  const stdin = openStdin();
  try {
    return await replayFrom(stdin, files, generations, options, output);
  } finally {
    stdin.reader.close();
  }
}

async function replayFrom(
  stdin: Stdin,
  files: readonly string[],
  generations: readonly GenerationInput[],
  options: ReplayOptions,
  output: Output,
): Promise<number> {
  const confs = generations.map((input) => input.conf);
  const shape = REPLAY_SHAPES[options.format];
  const logs = await openLogs({ files, errorLogs: options.errorLog }, confs, options, () =>
    stdin.head(),
  );
  for (const { file, because } of logs.leftOut) {
    output.note(`${file.head.path} holds the same requests as ${because.head.path}: left out`);
  }
  for (const note of missingFieldNotes(logs.access)) output.note(note);
  let unparsable = 0;
  let text = shape.head;
  let isFirst = true;
  const hasMixed = logs.access.some((file) => file.isPrefixed);
  const session: ReplaySession = new ReplaySession({
    generations,
    isAudit: options.audit,
    latenessMs: options.latenessMs,
    usesConnection: logs.access.every((file) => new AccessFields(file.scanner).hasConnection),
    hasErrorLog: logs.errors.length > 0,
    isErrorLogAlone: logs.access.length === 0,
    errorLogCount: logs.errors.length + (hasMixed ? logs.access.length : 0),
    details: 'all',
    onDecision: (event) => {
      text += shape.row(describe(session, event), isFirst);
      isFirst = false;
    },
    onUnmatchedLine: () => undefined,
    onMark: () => undefined,
    onNote: (note) => output.note(note),
  });
  const sink: LineSink = {
    onLines: () => undefined,
    onUnparsable: (lane, reason, raw) => {
      unparsable++;
      if (unparsable <= 5) output.unparsable(lane.name, lane.lines, reason, raw);
    },
  };
  const lanes = await makeLanes(logs, session, sink, {
    zone: zoneOf(logs.access, options.timezone),
    ...(options.chunkBytes === undefined ? {} : { chunkBytes: options.chunkBytes }),
    stdin: stdin.reader,
  });
  await runLanes(lanes, () => {
    if (text.length < BLOCK_CHARACTERS) return undefined;
    const block = text;
    text = '';
    return output.write(block);
  });
  session.finish();
  await output.write(text + shape.foot);
  return unparsable;
}

/** The public shape of a decision; excess in requests with three decimals. */
function describe(session: ReplaySession, event: number): ReplayedRequest {
  const { engine, generations } = session;
  const { pool } = engine;
  const details = session.detailsOf.get(event);
  const flags = pool.flags[event]!;
  const isLogged = (flags & FLAG.inferred) === 0;
  return {
    requestId: details?.requestId ?? null,
    connection: orNull(pool.connection[event]!),
    connectionRequests: orNull(pool.connectionRequests[event]!),
    decisionMs: pool.estMs[event]!,
    status: pool.httpStatus[event]! === 0 ? null : pool.httpStatus[event]!,
    logged: isLogged ? STATUS_WORDS[session.loggedOf(event)]! : null,
    verdict: STATUS_WORDS[pool.verdict[event]!]!,
    possible: wordsOf(pool.possible[event]!),
    source: SOURCE_WORDS[pool.source[event]!]!,
    zones: describeZones(session, event, generations.ruleSets[pool.rules[event]!] !== undefined),
  };
}

function describeZones(session: ReplaySession, event: number, isKnown: boolean): ReplayedZone[] {
  if (!isKnown) return [];
  const { engine } = session;
  const { pool } = engine;
  const base = event;
  return engine.rules[pool.rules[event]!]!.limits.map((limit, index) => {
    const slot = base + index;
    const keyId = pool.keyId[slot]!;
    const isEvaluated = pool.slotState[slot] === 1 && pool.outcome[slot] !== OUTCOME.notReached;
    return {
      index,
      zone: limit.zone.name,
      key: keyId < 0 ? null : limit.zone.keys.text(keyId),
      outcome: OUTCOME_WORDS[pool.outcome[slot]!]!,
      anchored: pool.anchorSlot[event] === index && !Number.isNaN(pool.anchorMilliReq[event]!),
      excess: isEvaluated ? requests(pool.excessMilliReq[slot]!) : null,
      excessLow: isEvaluated ? requests(Math.ceil(pool.lowMilliReq[slot]!)) : null,
      excessHigh: isEvaluated ? requests(Math.floor(pool.highMilliReq[slot]!)) : null,
    };
  });
}

function requests(milliReq: number): number {
  return Math.round(milliReq) / 1000;
}

function orNull(value: number): number | null {
  return value < 0 ? null : value;
}

function wordsOf(mask: number): (string | null)[] {
  if (mask === 0) return [];
  return STATUS_WORDS.filter((_, status) => (mask >> status) & 1);
}
