/**
 * The errors a person reads. Everything else that is thrown is a bug and keeps its stack trace.
 *
 * Exit codes follow BSD's sysexits.h, which nginx's own operators know from mail and cron.
 */
export const EXIT = {
  ok: 0,
  usage: 64,
  badLines: 65,
  noInput: 66,
  software: 70,
  io: 74,
  configuration: 78,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Where in a text something is: a file with a line, and a column or a byte where that is known. */
export interface Where {
  readonly path: string;
  readonly line: number;
  readonly column?: number;
}

/**
 * An error in what the user gave: a file, an option, a configuration, a store.
 *
 * Its message is complete for a terminal: where, what was expected, what was found, what to do.
 */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** `path:line` or `path:line:column`, as compilers and nginx write it. */
export function formatWhere(where: Where): string {
  const column = where.column === undefined ? '' : `:${where.column}`;
  return `${where.path}:${where.line}${column}`;
}

/**
 * Log content is hostile: control bytes are escaped and one bad line stays one terminal line.
 *
 * @param found text as read (latin1 or decoded)
 * @param maxLength longest result before it is cut, in characters
 */
export function quote(found: string, maxLength = 80): string {
  // JSON escapes C0 only. DEL and C1 can drive a terminal as well; signs of direction and of no
  // width can make it show something else than stands there.
  const text = JSON.stringify(found).replace(
    /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return text.length <= maxLength
    ? text
    : `${text.slice(0, maxLength)}…" (${found.length} characters)`;
}
