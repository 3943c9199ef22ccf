/**
 * One configuration file into directives, as ngx_conf_read_token() reads it.
 *
 * The order of the checks is the C function's: quotes, `${`, escapes, and where a comment may
 * begin all depend on the state in which a byte is met. Text is latin1, one character per byte.
 *
 * Not here: what a directive means, included files (source.ts), and the inside of Lua blocks
 * (lua-block.ts), whose braces and quotes follow Lua's rules.
 */
import { ConfError } from './conf-error.js';
import { endOfLuaBlock } from './lua-block.js';
import type { ConfWhere } from './model.js';

/** A line such as `limit_req zone=a;`, or the head of a block. */
export interface Directive {
  readonly kind: 'simple' | 'block';
  /** The name first; quotes and escapes taken off. Never empty. */
  readonly words: readonly string[];
  /** Where the name stands. */
  readonly where: ConfWhere;
  /** Where the closing `;` or `{` stands: the line that nginx puts into its errors. */
  readonly end: ConfWhere;
}

export type Token =
  | Directive
  | { readonly kind: 'close'; readonly end: ConfWhere }
  | { readonly kind: 'eof'; readonly end: ConfWhere };

/** nginx reads through a buffer of this size, and a word has to fit into it. */
const BUFFER_BYTES = 4096;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DOUBLE_QUOTE = 0x22;
const SHARP = 0x23;
const DOLLAR = 0x24;
const SINGLE_QUOTE = 0x27;
const CLOSE_PAREN = 0x29;
const SEMICOLON = 0x3b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

function isSpace(ch: number): boolean {
  return ch === SPACE || ch === TAB || ch === CR || ch === LF;
}

export class Lexer {
  readonly path: string;
  private readonly text: string;
  private pos = 0;
  private line = 1;

  constructor(path: string, text: string) {
    this.path = path;
    this.text = text;
  }

  where(): ConfWhere {
    return { path: this.path, line: this.line };
  }

  /**
   * The next directive, closing brace or end of the file.
   *
   * @throws ConfError for whatever nginx cannot read
   */
  next(): Token {
    const reading = new Reading();
    for (;;) {
      if (this.pos >= this.text.length) return this.endOfFile(reading);
      if (reading.start !== -1 && this.pos - reading.start === BUFFER_BYTES) this.tooLong(reading);
      const ch = this.text.charCodeAt(this.pos++);
      if (ch === LF) {
        this.line++;
        reading.inComment = false;
      }
      if (reading.inComment) continue;
      if (reading.isEscaped) {
        reading.isEscaped = false;
        continue;
      }
      const token =
        reading.isBetweenWords || reading.needSpace
          ? this.betweenWords(reading, ch)
          : this.insideWord(reading, ch);
      if (token !== undefined) return token;
    }
  }

  /** Moves behind the brace that closes the Lua block whose head has just been read. */
  skipLuaBlock(): void {
    const end = endOfLuaBlock(this.text, this.pos);
    const stop = end === -1 ? this.text.length : end;
    for (; this.pos < stop; this.pos++) {
      if (this.text.charCodeAt(this.pos) === LF) this.line++;
    }
    if (end === -1) throw new ConfError(this.where(), 'unexpected end of file, expecting "}"');
  }

  private betweenWords(reading: Reading, ch: number): Token | undefined {
    if (reading.needSpace) {
      if (isSpace(ch)) {
        reading.needSpace = false;
        reading.isBetweenWords = true;
        return undefined;
      }
      if (ch === SEMICOLON) return this.directive(reading, 'simple');
      if (ch === OPEN_BRACE) return this.directive(reading, 'block');
      // `if ($a = "b")`: the parenthesis after a quoted word begins a word of its own.
      if (ch !== CLOSE_PAREN) this.unexpected(ch);
      reading.needSpace = false;
      reading.isBetweenWords = true;
    }
    reading.start = this.pos - 1;
    reading.startLine = this.line;
    if (isSpace(ch)) return undefined;
    if (ch === SEMICOLON || ch === OPEN_BRACE) {
      if (reading.words.length === 0) this.unexpected(ch);
      return this.directive(reading, ch === SEMICOLON ? 'simple' : 'block');
    }
    if (ch === CLOSE_BRACE) {
      if (reading.words.length > 0) this.unexpected(ch);
      return { kind: 'close', end: this.where() };
    }
    if (ch === SHARP) {
      reading.inComment = true;
      return undefined;
    }
    if (reading.words.length === 0) reading.firstLine = this.line;
    reading.isBetweenWords = false;
    if (ch === BACKSLASH) reading.isEscaped = true;
    else if (ch === DOLLAR) reading.isVariable = true;
    else if (ch === DOUBLE_QUOTE || ch === SINGLE_QUOTE) {
      reading.start++;
      reading.quote = ch;
    }
    return undefined;
  }

  private insideWord(reading: Reading, ch: number): Token | undefined {
    if (ch === OPEN_BRACE && reading.isVariable) return undefined;
    reading.isVariable = false;
    if (ch === BACKSLASH) {
      reading.isEscaped = true;
      return undefined;
    }
    if (ch === DOLLAR) {
      reading.isVariable = true;
      return undefined;
    }
    if (reading.quote !== 0) {
      if (ch !== reading.quote) return undefined;
      reading.quote = 0;
      reading.needSpace = true;
    } else if (isSpace(ch) || ch === SEMICOLON || ch === OPEN_BRACE) {
      reading.isBetweenWords = true;
    } else {
      return undefined;
    }
    reading.words.push(unescapeWord(this.text.slice(reading.start, this.pos - 1)));
    if (ch === SEMICOLON) return this.directive(reading, 'simple');
    if (ch === OPEN_BRACE) return this.directive(reading, 'block');
    return undefined;
  }

  private directive(reading: Reading, kind: Directive['kind']): Directive {
    const where = { path: this.path, line: reading.firstLine };
    return { kind, words: reading.words, where, end: this.where() };
  }

  private endOfFile(reading: Reading): Token {
    if (reading.words.length > 0 || !reading.isBetweenWords) {
      throw new ConfError(this.where(), 'unexpected end of file, expecting ";" or "}"');
    }
    return { kind: 'eof', end: this.where() };
  }

  private unexpected(ch: number): never {
    throw new ConfError(this.where(), `unexpected "${String.fromCharCode(ch)}"`);
  }

  private tooLong(reading: Reading): never {
    const where = { path: this.path, line: reading.startLine };
    if (reading.quote !== 0) {
      const quote = String.fromCharCode(reading.quote);
      throw new ConfError(
        where,
        `too long parameter, probably missing terminating "${quote}" character`,
      );
    }
    const head = this.text.slice(reading.start, reading.start + 10);
    throw new ConfError(where, `too long parameter "${head}..." started`);
  }
}

/** The state of one call of ngx_conf_read_token(). */
class Reading {
  readonly words: string[] = [];
  firstLine = 0;
  start = -1;
  startLine = 0;
  quote = 0;
  isBetweenWords = true;
  needSpace = false;
  inComment = false;
  isEscaped = false;
  isVariable = false;
}

/** A backslash counts before quotes, itself, t, r and n, and stays a backslash otherwise. */
function unescapeWord(raw: string): string {
  if (!raw.includes('\\')) return raw;
  return raw.replace(/\\(["'\\trn])/g, (_, ch: string) => {
    if (ch === 't') return '\t';
    if (ch === 'r') return '\r';
    return ch === 'n' ? '\n' : ch;
  });
}
