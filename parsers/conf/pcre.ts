/**
 * PCRE patterns, as nginx compiles them, in the words of JavaScript's RegExp.
 *
 * The two differ where it matters for security as well as for limits: PCRE's `$` also matches
 * before a last newline (`/x.php%0a`), `\s` and case folding are ASCII only, and `[]a]` is a
 * class of two. So a pattern is read element by element and written anew, not passed on.
 * Subjects are latin1 strings, one character per byte, like the bytes that nginx matches.
 *
 * What JavaScript has no counterpart for (atomic groups, possessive quantifiers, recursion,
 * conditions, back references to groups that may be unset, UTF mode, extended syntax) is
 * reported, never guessed. One difference stays: a capture inside of a repeated group is
 * forgotten by JavaScript at every repetition, and kept by PCRE.
 *
 * Not here: which text is matched against which pattern, see location.ts and select-server.ts.
 */
import {
  addEscapeClass,
  addPosix,
  addRange,
  byteSource,
  classSource,
  emptySet,
  foldCase,
  type ByteSet,
} from './byte-set.js';

/** Why a pattern cannot be evaluated here; nginx itself may be fine with it. */
export interface UnsupportedPcre {
  readonly unsupported: string;
}

/** The same pattern would be translated again for every server that shares a snippet. */
const MAX_CACHED = 10_000;
const cache = new Map<string, RegExp | UnsupportedPcre>();

/**
 * Translates a pattern.
 *
 * @param pattern as written after `~`, latin1, quotes of the configuration already taken off
 * @param options nocase for `~*` and for server names, which nginx compiles caseless
 * @returns a RegExp without flags that carry state, or why there is none. Never throws.
 */
export function compilePcre(
  pattern: string,
  options: { readonly nocase: boolean },
): RegExp | UnsupportedPcre {
  const cacheKey = `${options.nocase ? 'i' : '-'}${pattern}`;
  const known = cache.get(cacheKey);
  if (known !== undefined) return known;
  const result = translate(pattern, options.nocase);
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(cacheKey, result);
  return result;
}

function translate(pattern: string, nocase: boolean): RegExp | UnsupportedPcre {
  try {
    return new RegExp(new Translator(pattern, nocase).run());
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message };
    if (error instanceof SyntaxError) return { unsupported: 'a syntax that has no counterpart' };
    throw error;
  }
}

/** Ends a translation; never leaves this module. */
class Unsupported extends Error {}

interface Modes {
  nocase: boolean;
  dotAll: boolean;
  multiline: boolean;
}

class Translator {
  private readonly text: string;
  private pos = 0;
  private out = '';
  private modes: Modes;
  private readonly saved: Modes[] = [];

  constructor(text: string, nocase: boolean) {
    this.text = text;
    this.modes = { nocase, dotAll: false, multiline: false };
  }

  run(): string {
    if (this.text.startsWith('(*')) throw new Unsupported('a verb such as (*UTF8)');
    while (this.pos < this.text.length) this.element();
    if (this.saved.length > 0) throw new Unsupported('a missing closing parenthesis');
    return this.out;
  }

  private element(): void {
    const ch = this.text[this.pos++]!;
    switch (ch) {
      case '\\':
        return this.escape();
      case '[':
        return this.characterClass();
      case '(':
        return this.group();
      case ')':
        return this.closeGroup();
      case '.':
        this.out += this.modes.dotAll ? '[^]' : '[^\\n]';
        return;
      case '^':
        this.out += this.modes.multiline ? '(?<![^\\n])' : '^';
        return;
      case '$':
        this.out += this.modes.multiline ? '(?![^\\n])' : '(?=\\n?$)';
        return;
      case '|':
        this.out += '|';
        return;
      case '*':
      case '+':
      case '?':
        return this.quantifier(ch);
      case '{':
        return this.brace();
      default:
        this.literal(ch.charCodeAt(0));
    }
  }

  private literal(byte: number): void {
    const lower = byte | 0x20;
    if (this.modes.nocase && lower >= 0x61 && lower <= 0x7a && byte < 0x80) {
      this.out += `[${byteSource(lower)}${byteSource(lower - 32)}]`;
    } else {
      this.out += byte > 0xff ? String.fromCharCode(byte) : byteSource(byte);
    }
  }

  private quantifier(source: string): void {
    const next = this.text[this.pos];
    if (next === '+') throw new Unsupported('a possessive quantifier');
    if (next === '?') this.pos++;
    this.out += next === '?' ? `${source}?` : source;
  }

  /** `{` counts only when it is a whole quantifier; PCRE takes anything else literally. */
  private brace(): void {
    const match = /^\d+(?:,\d*)?\}/.exec(this.text.slice(this.pos));
    if (match === null) return this.literal(0x7b);
    this.pos += match[0].length;
    this.quantifier(`{${match[0]}`);
  }

  private closeGroup(): void {
    const modes = this.saved.pop();
    if (modes === undefined) throw new Unsupported('an unmatched closing parenthesis');
    this.modes = modes;
    this.out += ')';
  }

  private open(source: string): void {
    this.saved.push({ ...this.modes });
    this.out += source;
  }

  private group(): void {
    if (this.text[this.pos] === '*') throw new Unsupported('a verb such as (*PRUNE)');
    if (this.text[this.pos] !== '?') return this.open('(');
    const rest = this.text.slice(this.pos + 1);
    const plain = /^(?:[:=!]|<[=!])/.exec(rest);
    if (plain !== null) {
      this.pos += 1 + plain[0].length;
      return this.open(`(?${plain[0]}`);
    }
    const named = /^(?:P?<([A-Za-z_]\w*)>|'([A-Za-z_]\w*)')/.exec(rest);
    if (named !== null) {
      this.pos += 1 + named[0].length;
      return this.open(`(?<${named[1] ?? named[2]}>`);
    }
    if (rest.startsWith('#')) return this.skipComment();
    const modes = /^([ims]*)(?:-([ims]+))?([:)])/.exec(rest);
    if (modes === null) throw new Unsupported(`a group that begins with "(?${rest.slice(0, 1)}"`);
    this.pos += 1 + modes[0].length;
    // With a colon the modes end with this group, with a parenthesis with the surrounding one.
    if (modes[3] === ':') this.open('(?:');
    for (const letter of modes[1] ?? '') this.setMode(letter, true);
    for (const letter of modes[2] ?? '') this.setMode(letter, false);
  }

  private setMode(letter: string, value: boolean): void {
    if (letter === 'i') this.modes.nocase = value;
    if (letter === 's') this.modes.dotAll = value;
    if (letter === 'm') this.modes.multiline = value;
  }

  private skipComment(): void {
    const end = this.text.indexOf(')', this.pos);
    if (end === -1) throw new Unsupported('an unterminated comment');
    this.pos = end + 1;
  }

  private escape(): void {
    const ch = this.text[this.pos++];
    if (ch === undefined) throw new Unsupported('a lone backslash at the end');
    const set = emptySet();
    if (addEscapeClass(set, ch)) {
      this.out += classSource(set, false);
      return;
    }
    const assertion = ASSERTIONS.get(ch);
    if (assertion !== undefined) {
      this.out += assertion;
      return;
    }
    if (ch === 'Q') return this.quotedRun((byte) => this.literal(byte));
    if (ch === 'E') return;
    if (/[1-9]/.test(ch)) throw new Unsupported('a back reference');
    this.literal(this.escapedByte(ch));
  }

  private quotedRun(emit: (byte: number) => void): void {
    const end = this.text.indexOf('\\E', this.pos);
    const stop = end === -1 ? this.text.length : end;
    for (; this.pos < stop; this.pos++) emit(this.text.charCodeAt(this.pos));
    if (end !== -1) this.pos += 2;
  }

  /** The byte behind an escape that stands for one byte; `ch` has been consumed. */
  private escapedByte(ch: string): number {
    const control = CONTROLS.get(ch);
    if (control !== undefined) return control;
    const rest = this.text.slice(this.pos);
    if (ch === 'x') {
      const match = /^(?:\{([0-9a-fA-F]{1,2})\}|(?!\{)([0-9a-fA-F]{0,2}))/.exec(rest);
      if (match === null) throw new Unsupported('a character beyond one byte');
      this.pos += match[0].length;
      return Number.parseInt((match[1] ?? match[2]!) || '0', 16);
    }
    if (ch === '0') {
      const digits = /^[0-7]{0,2}/.exec(rest)![0];
      this.pos += digits.length;
      return Number.parseInt(digits || '0', 8);
    }
    if (/[A-Za-z0-9]/.test(ch)) throw new Unsupported(`the escape \\${ch}`);
    return ch.charCodeAt(0);
  }

  private characterClass(): void {
    const set = emptySet();
    const negated = this.text[this.pos] === '^';
    if (negated) this.pos++;
    const first = this.pos;
    while (this.text[this.pos] !== ']' || this.pos === first) {
      if (this.pos >= this.text.length) throw new Unsupported('a missing closing bracket');
      this.classMember(set);
    }
    this.pos++;
    if (this.modes.nocase) foldCase(set);
    this.out += classSource(set, negated);
  }

  private classMember(set: ByteSet): void {
    const posix = /^\[:(\^?)([a-z]+):\]/.exec(this.text.slice(this.pos));
    if (posix !== null) {
      if (!addPosix(set, posix[2]!, posix[1] === '^')) {
        throw new Unsupported(`the class ${posix[0]}`);
      }
      this.pos += posix[0].length;
      return;
    }
    const low = this.classByte(set);
    if (low === undefined) return;
    if (this.text[this.pos] !== '-' || this.text[this.pos + 1] === ']') {
      return addRange(set, low, low);
    }
    this.pos++;
    const high = this.text.startsWith('[:', this.pos) ? undefined : this.classByte(set);
    if (high === undefined) {
      // Before a class such as \d the hyphen is a hyphen.
      addRange(set, low, low);
      addRange(set, 0x2d, 0x2d);
      return;
    }
    if (high < low) throw new Unsupported('a range out of order');
    addRange(set, low, high);
  }

  /** One byte of a class, or undefined when what stood there was added to the set as a whole. */
  private classByte(set: ByteSet): number | undefined {
    const ch = this.text[this.pos++];
    if (ch === undefined) throw new Unsupported('a missing closing bracket');
    if (ch !== '\\') return this.byteOf(ch);
    const escaped = this.text[this.pos++];
    if (escaped === undefined) throw new Unsupported('a missing closing bracket');
    if (addEscapeClass(set, escaped)) return undefined;
    if (escaped === 'b') return 0x08;
    if (escaped === 'E') return undefined;
    if (escaped === 'Q') {
      this.quotedRun((byte) => addRange(set, byte, byte));
      return undefined;
    }
    if (/[1-7]/.test(escaped)) {
      // No back references in a class: these are octal.
      const digits = /^[0-7]{0,2}/.exec(this.text.slice(this.pos))![0];
      this.pos += digits.length;
      return Number.parseInt(escaped + digits, 8) & 0xff;
    }
    return this.escapedByte(escaped);
  }

  private byteOf(ch: string): number {
    const byte = ch.charCodeAt(0);
    if (byte > 0xff) throw new Unsupported('a character beyond one byte');
    return byte;
  }
}

const ASSERTIONS: ReadonlyMap<string, string> = new Map([
  ['A', '^'],
  ['z', '$'],
  ['Z', '(?=\\n?$)'],
  ['b', '\\b'],
  ['B', '\\B'],
  ['N', '[^\\n]'],
]);

const CONTROLS: ReadonlyMap<string, number> = new Map([
  ['a', 0x07],
  ['e', 0x1b],
  ['f', 0x0c],
  ['n', 0x0a],
  ['r', 0x0d],
  ['t', 0x09],
]);
