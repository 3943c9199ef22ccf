/**
 * Which functions a profile of V8 (`node --cpu-prof`) spent its time in, by self time.
 *
 * Places are those of the TypeScript source where the compiler left a source map. Only JavaScript
 * threads are sampled: what the engine does on threads of its own shows as idle time here.
 */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The part of a .cpuprofile file that is read here. Lines and columns count from 0. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
      readonly columnNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export interface FunctionTime {
  readonly name: string;
  /** `src/x.ts:12`, or empty for V8's own (program), (garbage collector) and (idle). */
  readonly place: string;
  readonly selfMs: number;
}

/** Self time by function, the longest first. */
export function selfTimes(profile: CpuProfile): readonly FunctionTime[] {
  const microseconds = new Map<number, number>();
  for (const [i, id] of profile.samples.entries()) {
    // A sample stands for the time until the next one.
    microseconds.set(id, (microseconds.get(id) ?? 0) + (profile.timeDeltas[i + 1] ?? 0));
  }
  const maps = new Map<string, SourceMap | undefined>();
  const byFunction = new Map<string, { name: string; place: string; selfMs: number }>();
  for (const { id, callFrame } of profile.nodes) {
    const selfMs = (microseconds.get(id) ?? 0) / 1000;
    if (selfMs === 0) continue;
    const { functionName, url, lineNumber, columnNumber } = callFrame;
    const key = `${functionName} ${url}:${lineNumber}:${columnNumber}`;
    const known = byFunction.get(key);
    if (known !== undefined) known.selfMs += selfMs;
    else {
      const place = placeOf(url, lineNumber, columnNumber, maps);
      byFunction.set(key, { name: functionName || '(anonymous)', place, selfMs });
    }
  }
  return [...byFunction.values()].sort((a, b) => b.selfMs - a.selfMs);
}

function placeOf(
  url: string,
  line: number,
  column: number,
  maps: Map<string, SourceMap | undefined>,
): string {
  if (!url.startsWith('file:')) return url === '' ? '' : `${url}:${line + 1}`;
  const path = fileURLToPath(url);
  if (!maps.has(path)) maps.set(path, readSourceMap(path));
  const entry = maps.get(path)?.findEntry(line, column);
  if (entry === undefined || !('originalSource' in entry)) return `${shorten(path)}:${line + 1}`;
  const source = resolve(dirname(path), entry.originalSource);
  return `${shorten(source)}:${entry.originalLine + 1}`;
}

function readSourceMap(path: string): SourceMap | undefined {
  if (!existsSync(`${path}.map`)) return undefined;
  return new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as SourceMapPayload);
}

function shorten(path: string): string {
  return relative(process.cwd(), path);
}

/** The same by source file, the longest first; V8's own entries stay as they are. */
export function selfTimesByFile(times: readonly FunctionTime[]): readonly FunctionTime[] {
  const byFile = new Map<string, number>();
  for (const { name, place, selfMs } of times) {
    const file = place === '' ? name : place.replace(/:\d+$/, '');
    byFile.set(file, (byFile.get(file) ?? 0) + selfMs);
  }
  const files = [...byFile].map(([name, selfMs]) => ({ name, place: '', selfMs }));
  return files.sort((a, b) => b.selfMs - a.selfMs);
}

/** The first functions as a table, with their share of all the time sampled. */
export function formatSelfTimes(times: readonly FunctionTime[], rows: number): string {
  const totalMs = times.reduce((sum, { selfMs }) => sum + selfMs, 0);
  const lines = times.slice(0, rows).map(({ name, place, selfMs }) => {
    const share = ((100 * selfMs) / totalMs).toFixed(1);
    const row = `${selfMs.toFixed(0).padStart(8)} ${share.padStart(6)}  ${name.padEnd(32)} ${place}`;
    return row.trimEnd();
  });
  return [' self ms      %', ...lines].join('\n');
}
