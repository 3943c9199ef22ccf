/**
 * `limitlens zones`: how full each zone is and what it forgot, from the store or from logs;
 * `limitlens zones size`: how large a zone has to be.
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { ConcurrencyTracker } from '../analysis/concurrency.js';
import type { ConnZoneInputs } from '../analysis/conn-zones.js';
import { analyseConnZones, type ConnZoneAnalysis } from '../analysis/conn-zones.js';
import { connZonesText } from '../analysis/conn-zones-text.js';
import { lowerBounds, type IsGiven } from '../analysis/lower-bound.js';
import { readZoneInputs } from '../analysis/zone-inputs.js';
import { ZoneRows } from '../analysis/zone-rows.js';
import { analyseZones, type ZoneAnalysis } from '../analysis/zones.js';
import { zoneSizeText, zonesText } from '../analysis/zones-text.js';
import { capacityTable, sizeForKeys, type ZoneKind } from '../check/zone-size.js';
import { EXIT, InputError } from '../errors.js';
import { readConfs } from '../pipeline/confs.js';
import { rotationStem } from '../pipeline/log-files.js';
import { missingFieldNotes } from '../pipeline/missing-fields.js';
import type { OpenedLogs } from '../pipeline/open-logs.js';
import { AccessFields } from '../replay/access-fields.js';
import { sources, zoneTotals } from '../store/queries.js';
import { askStore } from './asked-store.js';
import { emptyRange } from './empty-range.js';
import type { Output } from './output.js';
import type { LogsChoice } from './replayed-logs.js';
import { replayRows } from './replayed-rows.js';
import type { StoreChoice } from './store-choice.js';
import { filterOf, type FilterChoice } from './store-filter.js';

export interface ZonesOptions extends StoreChoice, FilterChoice, LogsChoice {
  readonly format: 'text' | 'json';
}

/**
 * Files are replayed, and the store left alone; without any the store is asked.
 *
 * @throws InputError 64 for options that contradict each other
 */
export async function zonesCommand(
  files: readonly string[],
  options: ZonesOptions,
  output: Output,
): Promise<void> {
  const isFromLogs = files.length + options.errorLog.length > 0;
  const { zones, connZones, nothing } = isFromLogs
    ? await zonesOfLogs(files, options, output)
    : await zonesOfStore(options);
  const json = `${JSON.stringify({ zones, connZones })}\n`;
  const conn = connZonesText(connZones);
  const both = conn === '' ? zonesText(zones) : `${zonesText(zones)}\n${conn}`;
  const text = nothing === undefined ? both : `${nothing}\n`;
  await output.write(options.format === 'json' ? json : text);
}

interface Analyses {
  readonly zones: readonly ZoneAnalysis[];
  readonly connZones: readonly ConnZoneAnalysis[];
  /** What to say where the times asked for hold no request. */
  readonly nothing: string | undefined;
}

async function zonesOfLogs(
  files: readonly string[],
  options: ZonesOptions,
  output: Output,
): Promise<Analyses> {
  for (const name of ['since', 'until'] as const) {
    if (options[name] === undefined) continue;
    throw new InputError(
      `--${name} is about the store; logs given here are replayed whole`,
      EXIT.usage,
    );
  }
  const rows = new ZoneRows();
  const instance = options.instance ?? 'default';
  const run: { tracker?: ConcurrencyTracker } = {};
  const { generations, logs } = await replayRows(
    files,
    options,
    instance,
    rows,
    output,
    (session, { access }) => {
      const confs = session.generations.list.map(({ conf }) => conf);
      if (confs.every(({ connZones }) => connZones.size === 0)) return null;
      if (!tellIntervals(access)) return null;
      const tracker = new ConcurrencyTracker(session, { tried: [], top: 0 });
      run.tracker = tracker;
      return {
        onSubmit: (event, line, fields) => tracker.submit(event, line, fields),
        onDecision: (event) => tracker.decide(event),
      };
    },
  );
  for (const note of missingFieldNotes(logs.access)) output.note(note);
  const confs = generations.map(({ conf }) => conf);
  const isGiven = givenAmong(logs);
  const inputs = rows.inputs();
  run.tracker?.finish([]);
  const connInputs: ConnZoneInputs = {
    ...{ confs, instance, outcomes: rows.connOutcomes(), stepSeconds: inputs.stepSeconds },
    modelled: run.tracker?.zones ?? null,
    unknowns: [run.tracker === undefined ? NO_INTERVALS : STILL_UNDER_WAY],
    lowerBounds: lowerBounds(confs, isGiven, 'limit_conn'),
  };
  return {
    zones: analyseZones(inputs, lowerBounds(confs, isGiven)),
    connZones: analyseConnZones(connInputs),
    nothing: undefined,
  };
}

const NO_INTERVALS =
  'How many nodes were held is not known: access logs tell with $msec and $request_time.';
const STILL_UNDER_WAY =
  'Requests that had not ended when the log ends are in no line of it: they held nodes as well.';
const NOT_STORED =
  'How many nodes were held at one time the store does not tell: give the logs, ' +
  '`limitlens zones --conf nginx.conf access.log`.';

/** Without the times of all requests their keys' nodes can't be counted. */
function tellIntervals(access: OpenedLogs['access']): boolean {
  return (
    access.length > 0 && access.every(({ scanner }) => new AccessFields(scanner).hasRequestTime)
  );
}

/** A file whose log cannot be told may be any: then no log counts as missing. */
function givenAmong(logs: OpenedLogs): IsGiven {
  const access = [...logs.access, ...logs.leftOut.map(({ file }) => file)];
  if (access.some(({ target }) => target === null)) return () => true;
  const targets = new Set(access.map(({ target }) => target!));
  const empty = new Set(logs.empty.map(({ path }) => rotationStem(path)));
  return (path) => targets.has(path) || empty.has(rotationStem(path));
}

async function zonesOfStore(options: ZonesOptions): Promise<Analyses> {
  const filter = filterOf(options);
  const confs = readConfs(options.conf).map(({ conf }) => conf);
  const { inputs, outcomes, names, nothing } = await askStore(options, async (store) => ({
    inputs: await readZoneInputs(store, filter),
    outcomes: (await zoneTotals(store, filter)).filter(({ kind }) => kind === 'limit_conn'),
    names: (await sources(store, filter)).map(({ name }) => name),
    nothing: await emptyRange(store, filter),
  }));
  const isGiven = givenToStore(confs, names);
  const boundsOf = (kind: ZoneKind): ReturnType<typeof lowerBounds> | null =>
    confs.length === 0 ? null : lowerBounds(confs, isGiven, kind);
  const connZones = analyseConnZones({
    ...{ confs, outcomes, modelled: null, stepSeconds: inputs.stepSeconds },
    instance: options.instance ?? 'default',
    unknowns: [NOT_STORED],
    lowerBounds: boundsOf('limit_conn'),
  });
  return { zones: analyseZones(inputs, boundsOf('limit_req')), connZones, nothing };
}

function givenToStore(confs: readonly NginxConf[], names: readonly string[]): IsGiven {
  // What came by standard input, or under a name of no log, may be any of them.
  const known = new Set(
    confs.flatMap((conf) => [...conf.accessLogs, ...conf.errorLogs].map(({ path }) => stem(path))),
  );
  const stems = new Set(names.map(stem));
  const isUntold = names.length === 0 || [...stems].some((name) => !known.has(name));
  return (path) => isUntold || stems.has(stem(path));
}

function stem(path: string): string {
  return rotationStem(path);
}

export interface ZoneSizeOptions {
  readonly keys: number;
  readonly keyLength: number;
  readonly kind: ZoneKind;
  readonly format: 'text' | 'json';
}

const TABLE_SIZES_BYTES = [32, 64, 256, 1024, 10_240].map((kib) => kib * 1024);
/** Names of 43 and more characters cost one key; those in use are shorter. */
const NAME_LENGTH = 8;

/** @throws InputError 64 for no keys, or a key longer than the directive allows */
export async function zoneSizeCommand(options: ZoneSizeOptions, output: Output): Promise<void> {
  const { keys, keyLength, kind } = options;
  const longest = kind === 'limit_req' ? 65_535 : 255;
  if (keys < 1) throw new InputError('--keys: expected at least one', EXIT.usage);
  if (keyLength > longest) {
    throw new InputError(
      `--key-length ${keyLength}: nginx does not limit keys of more than ${longest} bytes (${kind})`,
      EXIT.usage,
    );
  }
  const size = sizeForKeys(keys, keyLength, NAME_LENGTH, kind);
  const [row] = capacityTable(TABLE_SIZES_BYTES, [keyLength], NAME_LENGTH, kind);
  const capacities = TABLE_SIZES_BYTES.map((sizeBytes, i) => ({
    sizeBytes,
    capacityKeys: row!.capacityKeys[i]!,
  }));
  const answer = { kind, keys, keyLengthBytes: keyLength, ...size, capacities };
  await output.write(
    options.format === 'json' ? `${JSON.stringify(answer)}\n` : zoneSizeText(answer),
  );
}
