/**
 * Numbers of the configuration, as ngx_atoi(), ngx_parse_size() and ngx_parse_time() read them.
 *
 * 64-bit arithmetic on purpose: nginx accepts what fits into a signed 64-bit integer, and then
 * multiplies by 1000 without looking.
 */
const INT64_MAX = 0x7fffffffffffffffn;

/** Digits only; undefined for anything else, nothing at all, or more than 63 bits. */
export function parseInteger(text: string): bigint | undefined {
  if (!/^[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text);
  return value > INT64_MAX ? undefined : value;
}

/** Bytes, with an optional k or m in either case. No other unit, as in ngx_parse_size(). */
export function parseSizeBytes(text: string): bigint | undefined {
  const unit = text.slice(-1).toLowerCase();
  const scale = unit === 'k' ? 1024n : unit === 'm' ? 1024n * 1024n : 1n;
  const value = parseInteger(scale === 1n ? text : text.slice(0, -1));
  if (value === undefined || value > INT64_MAX / scale) return undefined;
  return value * scale;
}

const TIME_UNITS_MS: readonly (readonly [string, number])[] = [
  ['y', 31_536_000_000],
  ['M', 2_592_000_000],
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
];

/** Milliseconds; units from large to small, each once, a bare number is seconds. */
export function parseTimeMs(text: string): number | undefined {
  if (text === '') return undefined;
  let totalMs = 0;
  let nextUnit = 0;
  for (const match of text.matchAll(/([0-9]+)(ms|[a-zA-Z]?) *|./g)) {
    if (match[1] === undefined) return undefined;
    const name = match[2] === '' ? 's' : match[2];
    const unit = TIME_UNITS_MS.findIndex(([letter]) => letter === name);
    if (unit < nextUnit) return undefined;
    nextUnit = unit + 1;
    totalMs += Number(match[1]) * TIME_UNITS_MS[unit]![1];
  }
  return totalMs;
}

/** What 1000 times the value is in a signed 64-bit integer, overflow and all. */
export function timesThousand(value: bigint): number {
  return Number(BigInt.asIntN(64, value * 1000n));
}
