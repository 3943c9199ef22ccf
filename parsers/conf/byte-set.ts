/**
 * Sets of byte values, as PCRE's character classes use them.
 *
 * nginx compiles its patterns without UTF mode unless told otherwise, so a class is a set of
 * 256 bytes, and only ASCII letters have another case. Sets are turned into JavaScript classes
 * over latin1 text, where one character is one byte.
 *
 * Not here: reading a pattern, see pcre.ts.
 */
export type ByteSet = Uint8Array;

const POSIX_RANGES: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  alpha: [
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  lower: [[0x61, 0x7a]],
  upper: [[0x41, 0x5a]],
  digit: [[0x30, 0x39]],
  xdigit: [
    [0x30, 0x39],
    [0x41, 0x46],
    [0x61, 0x66],
  ],
  alnum: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  word: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x5f, 0x5f],
    [0x61, 0x7a],
  ],
  space: [
    [0x09, 0x0d],
    [0x20, 0x20],
  ],
  blank: [
    [0x09, 0x09],
    [0x20, 0x20],
  ],
  cntrl: [
    [0x00, 0x1f],
    [0x7f, 0x7f],
  ],
  graph: [[0x21, 0x7e]],
  print: [[0x20, 0x7e]],
  punct: [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e],
  ],
  ascii: [[0x00, 0x7f]],
};

/** The bytes behind `\d`, `\w`, `\s`, `\h` and `\v`; the upper case letter is the complement. */
const ESCAPE_RANGES: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  d: POSIX_RANGES['digit']!,
  w: POSIX_RANGES['word']!,
  s: POSIX_RANGES['space']!,
  h: [
    [0x09, 0x09],
    [0x20, 0x20],
    [0xa0, 0xa0],
  ],
  v: [
    [0x0a, 0x0d],
    [0x85, 0x85],
  ],
};

export function emptySet(): ByteSet {
  return new Uint8Array(256);
}

export function addRange(set: ByteSet, first: number, last: number): void {
  set.fill(1, first, last + 1);
}

/** Adds `[:NAME:]`, or all other bytes when negated; false for a name that PCRE does not know. */
export function addPosix(set: ByteSet, name: string, negated: boolean): boolean {
  return addNamed(set, Object.hasOwn(POSIX_RANGES, name) ? POSIX_RANGES[name] : undefined, negated);
}

/** Adds what `\LETTER` stands for; false when the letter names no class. */
export function addEscapeClass(set: ByteSet, letter: string): boolean {
  const lower = letter.toLowerCase();
  const ranges = Object.hasOwn(ESCAPE_RANGES, lower) ? ESCAPE_RANGES[lower] : undefined;
  return addNamed(set, ranges, letter !== lower);
}

function addNamed(
  set: ByteSet,
  ranges: readonly (readonly [number, number])[] | undefined,
  negated: boolean,
): boolean {
  if (ranges === undefined) return false;
  const named = emptySet();
  for (const [first, last] of ranges) addRange(named, first, last);
  for (let byte = 0; byte < 256; byte++) {
    if ((named[byte] === 1) !== negated) set[byte] = 1;
  }
  return true;
}

/** Adds the other case of every ASCII letter in the set. */
export function foldCase(set: ByteSet): void {
  for (let upper = 0x41; upper <= 0x5a; upper++) {
    if (set[upper] === 1 || set[upper + 32] === 1) {
      set[upper] = 1;
      set[upper + 32] = 1;
    }
  }
}

/** The set as the source of a JavaScript class. */
export function classSource(set: ByteSet, negated: boolean): string {
  let source = negated ? '[^' : '[';
  for (let first = 0; first < 256; first++) {
    if (set[first] !== 1) continue;
    let last = first;
    while (last < 255 && set[last + 1] === 1) last++;
    source += byteSource(first);
    if (last > first) source += last > first + 1 ? `-${byteSource(last)}` : byteSource(last);
    first = last;
  }
  return `${source}]`;
}

/** One byte as the source of a JavaScript pattern, inside or outside of a class. */
export function byteSource(byte: number): string {
  const isPlain =
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    (byte >= 0x61 && byte <= 0x7a);
  return isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
}
