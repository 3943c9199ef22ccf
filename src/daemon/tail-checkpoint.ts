/**
 * The replay of the daemon as a checkpoint, and taken up from one.
 *
 * Not here: the form of the state (tail-state.ts), where a checkpoint is kept (spool.ts).
 */
import { EXIT, InputError } from '../errors.js';
import type { KnownLog, LogProgress } from '../input/follow-progress.js';
import type { StateSeal } from '../pipeline/state-seal.js';
import { discardUnheldKeys, restoreEngine, snapshotEngine } from '../replay/engine-state.js';
import type { SessionState } from '../replay/session-state.js';
import type { Checkpoint, SourceProgress } from '../store/write-ahead.js';
import type { LogTeller } from './log-teller.js';
import { logOf, toldOf, type TailLog, type ToldLog } from './tail-log.js';
import type { TailReader } from './tail-reader.js';
import type { TailGeneration } from './tail-generations.js';
import type { TailReplay } from './tail-replay.js';
import { rulesOf } from './tail-rules.js';
import { tailOf, type TailState } from './tail-state.js';

/**
 * Takes up the replay as the checkpoint has it.
 *
 * @param hasSteps whether steps after the checkpoint are to be done again
 * @returns what is known of the logs
 * @throws InputError for a state that this configuration cannot go on from
 */
export function takeUpReplay(
  replay: TailReplay,
  checkpoint: Checkpoint,
  hasSteps: boolean,
  { seal, teller }: { readonly seal: StateSeal; readonly teller: LogTeller },
): readonly KnownLog[] {
  const { session, logs, sources } = replay;
  const state = tailOf(checkpoint, seal);
  if (state === undefined) {
    const { state: text, sources: files } = checkpoint;
    if (text !== '') session.restore(JSON.parse(seal.open(text)) as SessionState);
    // What an import read through a pipe is never met again.
    return files.filter(({ headLength, offset }) => headLength > 0 || offset === 0);
  }
  const { tail } = state;
  replay.isDrained = tail.isDrained;
  if (!tail.isDrained) replay.zone.resume(tail.zone ?? undefined);
  for (const told of tail.told ?? []) takeUpLog(replay, teller, logOf(told), tail.logs);
  for (const told of tail.waiting ?? []) logs.add(logOf(told));
  const { ruleCount = session.engine.rules.length } = tail;
  if (tail.rules === rulesOf(session, ruleCount, tail.engine.zones.length)) {
    restoreEngine(session, tail.engine);
    replay.aggregator.restore(tail.aggregates);
    discardUnheldKeys(session, tail.engine);
  } else if (tail.isDrained && !hasSteps) {
    session.restore(state);
  } else {
    throw new InputError(
      `another version of limitlens left requests of instance "${checkpoint.instance}" waiting ` +
        'for their decision, and reads their configuration otherwise\n' +
        '  Start that version, end it with SIGTERM, then start this one.',
      EXIT.configuration,
    );
  }
  sources.restore(tail.sources);
  return tail.logs;
}

/** A log that was followed before; one with the same requests that was not stays left out. */
function takeUpLog(
  { logs }: TailReplay,
  teller: LogTeller,
  log: TailLog,
  known: readonly KnownLog[],
): void {
  const others = logs.all.filter(({ path }) => !known.some(({ name }) => name === path));
  const twin = log.kind === 'access' ? teller.twinOf(log, others) : undefined;
  if (twin !== undefined) {
    logs.remove(twin.path);
    teller.exclude(twin.path);
  }
  logs.add(log);
}

export interface CheckpointParts {
  readonly instance: string;
  readonly sequence: number;
  readonly generations: readonly TailGeneration[];
  readonly reader: TailReader;
  readonly seal: StateSeal;
  /** What the checkpoint before knew of logs. */
  readonly oldSources: readonly SourceProgress[];
}

/** The replay as it is, all that waits included; sources that are over are forgotten. */
export function checkpointOf(replay: TailReplay, parts: CheckpointParts): Checkpoint {
  const { session, sources, isDrained } = replay;
  const { reader, instance, sequence } = parts;
  const logs = reader.progress();
  const isOpen = new Set(logs.filter((log) => !log.complete).map((log) => log.sourceId));
  sources.drop((id) => !isOpen.has(id));
  const { latestMs } = session;
  const { newestMs } = reader;
  const empty = { version: 1, cursorMs: session.engine.cursorMs, masterPid: -1 } as const;
  const state: TailState = {
    // An import behind a daemon that has not drained finds no zones: what waits would be missing.
    ...(isDrained ? session.snapshot() : { ...empty, zones: [], lines: [] }),
    tail: {
      generations: parts.generations.map(({ stored }) => stored),
      ...storedRules(replay),
      engine: snapshotEngine(session),
      aggregates: replay.aggregator.snapshot(),
      logs,
      sources: sources.snapshot(),
      told: reader.told,
      waiting: waitingLogs(replay),
      zone: replay.zone.zone ?? null,
      newestMs: newestMs === -Infinity ? null : newestMs,
      isDrained,
      latenessMs: session.latenessMs,
    },
  };
  const old = parts.oldSources.filter(
    (source) => !logs.some(({ sourceId }) => sourceId === source.sourceId),
  );
  return {
    instance,
    sequence,
    sources: [...old, ...logs.map(sourceProgress)],
    state: parts.seal.seal(JSON.stringify(state)),
    logTimeMs: Number.isFinite(latestMs) ? latestMs : 0,
  };
}

function storedRules({ session }: TailReplay): { rules: string; ruleCount: number } {
  const { rules, zones } = session.generations;
  return { rules: rulesOf(session, rules.length, zones.length), ruleCount: rules.length };
}

/** Logs that lines wait of, whatever a later configuration says of them. */
function waitingLogs({ logs, sources }: TailReplay): ToldLog[] {
  return logs.all.filter(({ path }) => sources.of(path).length > 0).map(toldOf);
}

/** What an import knows a log by; lines and first time are not counted by source here. */
function sourceProgress(log: LogProgress): SourceProgress {
  const { sourceId, headHash, headLength, tailHash, offset, name, complete } = log;
  const lastMs = Math.floor(log.lastMs);
  const place = { sourceId, headHash, headLength, tailHash, offset, name, complete };
  return { ...place, lines: 0, firstMs: 0, lastMs };
}
