/**
 * Readers of the captures in test/traces: what nginx's debug log said it decided (truth.jsonl),
 * and the access log with every field. Paths are relative to the repository, where tests run.
 *
 * Times are milliseconds, of the monotonic clock where the name says mono, else since the epoch.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const TRACES = [
  'a_burst5_delay',
  'b_burst5_nodelay',
  'd_dry_run',
  'e_two_zones',
  'f_rpm',
  'g_mixed_2workers',
  'i_mixed_status',
  'j_slow_headers',
  'k_starvation',
  'l_mixed_keys',
  'm_http2',
  'o_keys_map_geo',
  'p_reload',
  'q_limit_conn',
] as const;

export type TraceName = (typeof TRACES)[number];

export function traceDir(name: TraceName): string {
  return join(process.cwd(), 'test/traces', name);
}

/** One evaluated limit of a request, at its place in the location's list. */
export interface TruthZone {
  readonly index: number;
  readonly rc: 'OK' | 'AGAIN' | 'BUSY' | 'ERROR';
  readonly excessMilliReq: number;
}

/** One request; a field is null where the capture does not have it. */
export interface TruthRecord {
  readonly requestId: string;
  readonly connection: number;
  readonly connectionRequests: number;
  readonly pid: number;
  readonly status: number;
  /** $limit_req_status, empty for none. */
  readonly limitReqStatus: string;
  readonly zones: readonly TruthZone[];
  /** Place in the order of the lookups, over all workers. */
  readonly seq: number | null;
  readonly seqLast: number | null;
  readonly decisionMonoMs: number | null;
  readonly decisionWallMs: number | null;
  readonly requestLineMonoMs: number;
  /** An error-log line said "limiting requests" or "delaying request". */
  readonly hasLimitingLine: boolean;
  readonly hasDelayingLine: boolean;
  readonly delayMs: number | null;
  readonly isNewNode: boolean | null;
  readonly evictedKeys: readonly string[] | null;
  readonly evictedExcessMilliReq: readonly number[] | null;
  readonly allocFailures: number | null;
  /** Connections of the key after this request took one. */
  readonly connections: number | null;
  readonly isConnRejected: boolean | null;
  readonly connSeq: number | null;
  readonly connMonoMs: number | null;
  readonly connReleaseSeq: number | null;
  readonly connReleaseMonoMs: number | null;
  /** Connections of the key before this request gave one back. */
  readonly connectionsAtRelease: number | null;
}

/** truth.jsonl in the order of the file, which in a–j is the order of the decisions. */
export function readTruth(dir: string): TruthRecord[] {
  return readJsonLines(join(dir, 'truth.jsonl')).map(toTruth);
}

/** The requests that a limit decided, in the order in which workers took the lock. */
export function inDecisionOrder(records: readonly TruthRecord[]): TruthRecord[] {
  const decided = records.filter((record) => record.decisionMonoMs !== null);
  return decided.sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
}

/** A line of access.log, its fields as logged. */
export interface AccessJson {
  readonly msec: number;
  readonly requestTime: number;
  readonly status: number;
  readonly limitReqStatus: string;
  readonly limitConnStatus: string;
  readonly upstreamStatus: string;
  readonly upstreamResponseTime: string;
  readonly remoteAddr: string;
  /** $arg_k. */
  readonly key: string;
  readonly serverName: string;
  readonly method: string;
  readonly uri: string;
  readonly requestId: string;
  readonly connection: number;
  readonly connectionRequests: number;
  readonly pid: number;
  /** $http_x_api_key; only trace o logs it. */
  readonly apiKey: string;
}

/** access.log in the order of the file. */
export function readAccessJson(dir: string): AccessJson[] {
  return readJsonLines(join(dir, 'access.log')).map((fields) => ({
    msec: number(fields, 'msec'),
    requestTime: number(fields, 'request_time'),
    status: number(fields, 'status'),
    limitReqStatus: text(fields, 'limit_req_status'),
    limitConnStatus: text(fields, 'limit_conn_status'),
    upstreamStatus: text(fields, 'upstream_status'),
    upstreamResponseTime: text(fields, 'upstream_response_time'),
    remoteAddr: text(fields, 'remote_addr'),
    key: text(fields, 'key'),
    serverName: text(fields, 'server_name'),
    method: text(fields, 'method'),
    uri: text(fields, 'uri'),
    requestId: text(fields, 'request_id'),
    connection: number(fields, 'connection'),
    connectionRequests: number(fields, 'connection_requests'),
    pid: number(fields, 'pid'),
    apiKey: optional(fields, 'hdr', text) ?? '',
  }));
}

/** access.log by request id. */
export function accessById(dir: string): Map<string, AccessJson> {
  return new Map(readAccessJson(dir).map((line) => [line.requestId, line]));
}

/** Worker processes by configuration, in order: the first, then one group per reload. */
export function workerGenerations(dir: string): number[][] {
  const generations: number[][] = [[]];
  for (const line of readFileSync(join(dir, 'error.log'), 'latin1').split('\n')) {
    const worker = /start worker process (\d+)$/.exec(line);
    if (worker !== null) generations.at(-1)!.push(Number(worker[1]));
    else if (line.endsWith(': reconfiguring')) generations.push([]);
  }
  return generations;
}

type Fields = Readonly<Record<string, unknown>>;

function readJsonLines(path: string): Fields[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Fields);
}

function toTruth(fields: Fields): TruthRecord {
  return {
    requestId: text(fields, 'request_id'),
    connection: number(fields, 'connection'),
    connectionRequests: number(fields, 'connection_requests'),
    pid: number(fields, 'pid'),
    status: number(fields, 'status'),
    limitReqStatus: text(fields, 'limit_req_status'),
    zones: (fields['zones'] as Fields[]).map((zone) => ({
      index: number(zone, 'i'),
      rc: text(zone, 'rc') as TruthZone['rc'],
      excessMilliReq: milli(number(zone, 'excess')),
    })),
    seq: optional(fields, 'seq', number),
    seqLast: optional(fields, 'seq_last', number),
    decisionMonoMs: optional(fields, 'decision_mono_ms', number),
    decisionWallMs: optional(fields, 'decision_wall_ms', number),
    requestLineMonoMs: number(fields, 'reqline_mono_ms'),
    hasLimitingLine: fields['limiting_line'] === true,
    hasDelayingLine: fields['delaying_line'] === true,
    delayMs: optional(fields, 'delay_ms', number),
    isNewNode: (fields['new_node'] as boolean | undefined) ?? null,
    evictedKeys: (fields['evicted'] as string[] | undefined) ?? null,
    evictedExcessMilliReq: (fields['evicted_excess'] as number[] | undefined)?.map(milli) ?? null,
    allocFailures: optional(fields, 'alloc_failures', number),
    ...toConnTruth(fields),
  };
}

type ConnTruth = Pick<
  TruthRecord,
  | 'connections'
  | 'isConnRejected'
  | 'connSeq'
  | 'connMonoMs'
  | 'connReleaseSeq'
  | 'connReleaseMonoMs'
  | 'connectionsAtRelease'
>;

/** Trace q names these fields; trace i has a list of counts, and a mark for a rejection's line. */
function toConnTruth(fields: Fields): ConnTruth {
  const counts = fields['limit_conn'] as Fields[] | undefined;
  const isRejected = fields['conn_rejected'] as boolean | undefined;
  const isDecided = counts !== undefined || fields['limiting_conn_line'] === true;
  return {
    connections:
      counts === undefined ? optional(fields, 'conn', number) : number(counts[0]!, 'conn'),
    isConnRejected: isRejected ?? (isDecided ? counts === undefined : null),
    connSeq: optional(fields, 'conn_seq', number),
    connMonoMs: optional(fields, 'conn_mono_ms', number),
    connReleaseSeq: optional(fields, 'conn_release_seq', number),
    connReleaseMonoMs: optional(fields, 'conn_release_mono_ms', number),
    connectionsAtRelease: optional(fields, 'conn_at_release', number),
  };
}

function milli(requests: number): number {
  return Math.round(requests * 1000);
}

function number(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== 'number') throw new Error(`${name} is no number: ${String(value)}`);
  return value;
}

function text(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string') throw new Error(`${name} is no text: ${String(value)}`);
  return value;
}

function optional<T>(
  fields: Fields,
  name: string,
  read: (fields: Fields, name: string) => T,
): T | null {
  return fields[name] === undefined ? null : read(fields, name);
}
