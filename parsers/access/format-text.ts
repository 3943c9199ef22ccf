/**
 * The text of a log_format, cut into literals and variables as ngx_http_log_compile_format() does.
 *
 * Not here: what a variable's value may look like (value-grammar.ts), and the quoting of the
 * configuration file, which the configuration parser has undone before the text arrives here.
 */

export type Escape = 'default' | 'json' | 'none';

export interface LogFormat {
  readonly name: string;
  readonly escape: Escape;
  /** The strings of the directive, concatenated as nginx does. */
  readonly text: string;
}

/** literals has one element more than variables: literal, variable, literal, …, literal. */
export interface FormatParts {
  /** latin1: one character is one byte. */
  readonly literals: readonly string[];
  /** Without the dollar sign, in order, repetitions kept. */
  readonly variables: readonly string[];
}

/** A log_format that nginx refuses; `column` counts from 1 in its text. */
export class LogFormatError extends Error {
  override readonly name = 'LogFormatError';
  readonly column: number;

  constructor(format: LogFormat, column: number, expected: string) {
    const found = JSON.stringify(format.text.slice(column - 1, column + 19));
    super(`log_format "${format.name}", column ${column}: expected ${expected}, found ${found}`);
    this.column = column;
  }
}

const VARIABLE = /\$(?:([A-Za-z0-9_]+)|\{([A-Za-z0-9_]+)\})/y;

/**
 * Splits a format text.
 *
 * @throws LogFormatError where nginx says "invalid parameter" or misses a closing brace
 */
export function splitFormat(format: LogFormat): FormatParts {
  // A configuration is UTF-8 text, a log is bytes: literals are compared as bytes.
  const text = Buffer.from(format.text, 'utf8').toString('latin1');
  const literals: string[] = [];
  const variables: string[] = [];
  let at = 0;
  for (;;) {
    const dollar = text.indexOf('$', at);
    literals.push(text.slice(at, dollar < 0 ? text.length : dollar));
    if (dollar < 0) return { literals, variables };
    VARIABLE.lastIndex = dollar;
    const match = VARIABLE.exec(text);
    if (match === null) throw new LogFormatError(format, dollar + 1, 'a variable like $status');
    variables.push(match[1] ?? match[2] ?? '');
    at = VARIABLE.lastIndex;
  }
}
