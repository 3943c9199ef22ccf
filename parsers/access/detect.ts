/**
 * Tells by content which log_format a file has, and whether it is an error log instead.
 *
 * Not here: reading the file, and which formats there are to choose from.
 */
import type { LineScanner } from './line-scanner.js';

/** Where the best candidate stopped on the first line that it did not fit. */
export interface Misfit {
  readonly scanner: LineScanner;
  /** From 1, in the lines that were given. */
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

export type Detection =
  | { readonly format: LineScanner }
  | { readonly tie: readonly LineScanner[] }
  | { readonly none: true; readonly best?: Misfit };

const SAMPLE_LINES = 1000;

/**
 * The candidate that fits most of the first 1000 lines, empty ones left out.
 *
 * Candidates with equal text and escaping are one. Two different ones that fit equally many lines
 * are a tie: only the user can tell which fields these are.
 */
export function detectFormat(
  lines: readonly Uint8Array[],
  candidates: readonly LineScanner[],
): Detection {
  const sample = lines.slice(0, SAMPLE_LINES).filter((line) => line.length > 0);
  const distinct = withoutTwins(candidates);
  const fits = distinct.map((scanner) => countFits(scanner, sample));
  const most = Math.max(0, ...fits);
  if (most === 0) return findBest(distinct, lines);
  const winners = distinct.filter((_, i) => fits[i] === most);
  return winners.length === 1 ? { format: winners[0]! } : { tie: winners };
}

function withoutTwins(candidates: readonly LineScanner[]): LineScanner[] {
  const byText = new Map<string, LineScanner>();
  for (const scanner of candidates) {
    const { escape, text } = scanner.format;
    const key = `${escape}:${text}`;
    if (!byText.has(key)) byText.set(key, scanner);
  }
  return [...byText.values()];
}

function countFits(scanner: LineScanner, sample: readonly Uint8Array[]): number {
  let count = 0;
  for (const line of sample) if (scanner.scan(line, 0, line.length) < 0) count++;
  return count;
}

/** The candidate that came furthest on the first line with anything in it. */
function findBest(candidates: readonly LineScanner[], lines: readonly Uint8Array[]): Detection {
  const index = lines.findIndex((line) => line.length > 0);
  const line = lines[index];
  if (line === undefined) return { none: true };
  let best: Misfit | undefined;
  for (const scanner of candidates) {
    const column = scanner.scan(line, 0, line.length) + 1;
    if (best !== undefined && column <= best.column) continue;
    best = { scanner, line: index + 1, column, expected: scanner.expected() };
  }
  return best === undefined ? { none: true } : { none: true, best };
}

const ERROR_HEAD =
  /^(?:\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d \[(?:emerg|alert|crit|error|warn|notice|info|debug)\] \d+#\d+: |nginx: \[\w+\] )/;

/** Whether most of the first 1000 lines, empty ones left out, begin like nginx's error log. */
export function looksLikeErrorLog(lines: readonly Uint8Array[]): boolean {
  const sample = lines.slice(0, SAMPLE_LINES).filter((line) => line.length > 0);
  const heads = sample.filter((line) =>
    ERROR_HEAD.test(Buffer.from(line.subarray(0, 64)).toString('latin1')),
  );
  return heads.length * 2 > sample.length;
}
