/**
 * What the measurements amount to: medians, ratios, and whether the targets are met.
 *
 * Units: ms, bytes, lines.
 */
import type { ContenderName } from './contenders.js';
import type { Measured } from './measured-run.js';

/** The median of each number over the rounds of one program. */
export interface Result {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakRssBytes: number;
}

export interface Target {
  readonly title: string;
  readonly value: number;
  readonly wanted: string;
  readonly isMet: boolean;
}

const LEAST_OF_MAWK = 0.3;
const AIM_OF_MAWK = 0.6;
const LEAST_OF_GOACCESS = 5;
const MOST_RSS_RATIO = 1.1;

/** @throws RangeError for an empty list */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('the median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function summarize(rounds: readonly Measured[]): Result {
  return {
    wallMs: median(rounds.map(({ wallMs }) => wallMs)),
    cpuMs: median(rounds.map(({ cpuMs }) => cpuMs)),
    peakRssBytes: median(rounds.map(({ peakRssBytes }) => peakRssBytes)),
  };
}

/** Of speeds over the same corpus: targets whose two sides were both measured. */
export function speedTargets(results: ReadonlyMap<ContenderName, Result>): readonly Target[] {
  const own = results.get('import');
  if (own === undefined) return [];
  const targets: Target[] = [];
  const compare = (peer: ContenderName, least: number, aim: string): void => {
    const other = results.get(peer);
    if (other === undefined) return;
    const value = other.wallMs / own.wallMs;
    const wanted = `at least ${least}${aim}`;
    targets.push({ title: `import / ${peer}, speed`, value, wanted, isMet: value >= least });
  };
  compare('mawk', LEAST_OF_MAWK, `, aim ${AIM_OF_MAWK}`);
  compare('goaccess', LEAST_OF_GOACCESS, '');
  return targets;
}

/** Of the import's peak memory over a small corpus and one four times as large. */
export function memoryTarget(small: Result, large: Result): Target {
  const value = large.peakRssBytes / small.peakRssBytes;
  return {
    title: 'peak RSS, 4 times the lines',
    value,
    wanted: `at most ${MOST_RSS_RATIO}`,
    isMet: value <= MOST_RSS_RATIO,
  };
}

export function formatResult(title: string, lines: number, result: Result): string {
  const wall = secondsText(result.wallMs);
  // On a machine that others use as well, processor time tells what the clock can't.
  const cpu = Number.isNaN(result.cpuMs) ? '' : `  CPU ${secondsText(result.cpuMs)} s`;
  const speed = (lines / 1000 / result.wallMs).toFixed(3).padStart(8);
  const rss = (result.peakRssBytes / 1024 / 1024).toFixed(0).padStart(6);
  return `${title.padEnd(26)} ${wall} s${cpu} ${speed} M lines/s ${rss} MiB`;
}

function secondsText(ms: number): string {
  return (ms / 1000).toFixed(2).padStart(7);
}

export function formatTarget({ title, value, wanted, isMet }: Target): string {
  return `${title.padEnd(26)} ${value.toFixed(2).padStart(7)}   ${wanted}: ${isMet ? 'met' : 'MISSED'}`;
}
