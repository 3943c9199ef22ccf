/**
 * How a replay from logs compares with the truth of nginx's debug log, trace by trace.
 *
 * Runs the built command on copies of real nginx's logs and joins its output with truth.jsonl.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTruth, traceDir, type TRACES } from './truth.js';

export type TraceName = (typeof TRACES)[number];

export interface ReplayedZone {
  readonly index: number;
  readonly zone: string;
  readonly key: string | null;
  readonly outcome: string;
  readonly anchored: boolean;
  readonly excess: number | null;
  readonly excessLow: number | null;
  readonly excessHigh: number | null;
}

export interface ReplayedRequest {
  readonly requestId: string | null;
  readonly connection: number | null;
  readonly connectionRequests: number | null;
  readonly decisionMs: number;
  readonly status: number;
  readonly logged: string | null;
  readonly verdict: string | null;
  readonly possible: readonly string[];
  readonly source: string | null;
  readonly zones: readonly ReplayedZone[];
}

export interface Agreement {
  readonly trace: TraceName;
  /** Requests that nginx took a decision on. */
  readonly decided: number;
  readonly wrong: number;
  readonly unexplained: number;
  readonly meanPossible: number;
  readonly zoneRows: number;
  readonly outside: number;
  /** Widths of the bounds of rows without an error-log line, in ms · rate. */
  readonly medianWidthMs: number;
  readonly p95WidthMs: number;
}

/** The built command, run from the root of the checkout; tests are compiled beside it. */
export const CLI = new URL('../../src/cli.js', import.meta.url).pathname;

export function confArguments(dir: string): string[] {
  const generations = [1, 2, 3, 4].map((n) => join(dir, `nginx.conf.${n}`)).filter(existsSync);
  const confs = generations.length > 0 ? generations : [join(dir, 'nginx.conf')];
  return confs.flatMap((conf) => ['--conf', conf]);
}

/** Runs `limitlens replay` and parses what it prints. */
export function replayFiles(args: readonly string[]): ReplayedRequest[] {
  const run = spawnSync(process.execPath, [CLI, 'replay', ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (run.status !== 0) throw new Error(`replay failed (${run.status}): ${run.stderr}`);
  return run.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ReplayedRequest);
}

export function replayTrace(trace: TraceName, isAudit: boolean): ReplayedRequest[] {
  const dir = traceDir(trace);
  const logs = [join(dir, 'access.log'), '--error-log', join(dir, 'error.log')];
  return replayFiles([...confArguments(dir), ...logs, ...(isAudit ? ['--audit'] : [])]);
}

/** Compares a trace's replay with its truth. */
export function measure(trace: TraceName, isAudit: boolean): Agreement {
  return compare(trace, replayTrace(trace, isAudit));
}

export function compare(trace: TraceName, requests: readonly ReplayedRequest[]): Agreement {
  const dir = traceDir(trace);
  const rates = ratesOf(dir);
  const truth = new Map(readTruth(dir).map((record) => [record.requestId, record]));
  let decided = 0;
  let wrong = 0;
  let unexplained = 0;
  let possible = 0;
  let zoneRows = 0;
  let outside = 0;
  const widths: number[] = [];
  for (const request of requests) {
    const record = truth.get(request.requestId ?? '');
    if (record === undefined) throw new Error(`${trace}: no truth for ${request.requestId}`);
    const said = record.limitReqStatus === '' ? null : record.limitReqStatus;
    if (said === null && request.verdict === null) continue;
    decided++;
    if (request.verdict !== said) wrong++;
    if (said === null || !request.possible.includes(said)) unexplained++;
    possible += request.possible.length;
    for (const zone of record.zones) {
      if (zone.rc === 'ERROR') continue;
      zoneRows++;
      const found = request.zones[zone.index];
      if (
        found?.excessLow == null ||
        found.excessHigh == null ||
        zone.excessMilliReq < Math.round(found.excessLow * 1000) ||
        zone.excessMilliReq > Math.round(found.excessHigh * 1000)
      ) {
        outside++;
      } else if (!found.anchored) {
        widths.push(
          ((found.excessHigh - found.excessLow) * 1000) / (rates.get(found.zone)! / 1000),
        );
      }
    }
  }
  widths.sort((a, b) => a - b);
  return {
    trace,
    decided,
    wrong,
    unexplained,
    meanPossible: decided === 0 ? 0 : possible / decided,
    zoneRows,
    outside,
    medianWidthMs: widths[Math.floor(widths.length / 2)] ?? 0,
    p95WidthMs: widths[Math.floor(widths.length * 0.95)] ?? 0,
  };
}

/** Rates by zone in milliRps; of several generations the last one's, which is the largest here. */
function ratesOf(dir: string): Map<string, number> {
  const rates = new Map<string, number>();
  const text = readFileSync(join(dir, 'nginx.conf'), 'utf8');
  for (const match of text.matchAll(/zone=(\w+):\w+ rate=(\d+)r\/([sm])/g)) {
    const perSecond =
      match[3] === 's' ? Number(match[2]) * 1000 : Math.trunc((Number(match[2]) * 1000) / 60);
    rates.set(match[1]!, perSecond);
  }
  return rates;
}
