/**
 * What one log line means: `limitlens explain`.
 *
 * Tells error-log lines from access-log lines by content, takes off what containers and syslog put
 * before them, and says what nginx did, with the sums. A line never throws: what is no line of
 * nginx's is `malformed`, with the place where it stops being one.
 *
 * Not here: text for a terminal (explain-text.ts), and anything that needs more lines than one.
 */
import { detectFormat } from '../../parsers/access/detect.js';
import {
  type LineScanner,
  LogFormatError,
  compileLogFormat,
} from '../../parsers/access/line-scanner.js';
import { PREDEFINED_FORMATS } from '../../parsers/access/predefined.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { type ErrorLine, parseErrorLine } from '../../parsers/error/error-line.js';
import { PrefixStripper } from '../../parsers/prefix.js';
import { quote } from '../errors.js';
import { explainAccessLine } from './explain-access.js';
import { explainLimitLine } from './explain-limits.js';
import { explainKeyTooLong, explainNodeFailure, explainSlab } from './explain-memory.js';
import { explainMark, explainOther, explainRefusal } from './explain-process.js';
import { readable, toLatin1 } from './explain-request.js';
import { type Explanation, blank, finding } from './explanation.js';

export type { Explanation } from './explanation.js';

export interface ExplainOptions {
  readonly conf?: NginxConf;
  /** Arguments of requests may hold secrets and are left out, unless this is set. */
  readonly showArgs?: boolean;
}

type KnownErrorLine = Exclude<ErrorLine, { readonly kind: 'malformed' }>;

/**
 * Explains one line of an error or access log.
 *
 * @param line latin1 (one character a byte) or decoded text; parts of one line that a container
 *   runtime has split may be given together, with their newlines
 */
export function explainLine(line: string, options: ExplainOptions): Explanation {
  const given = toLatin1(line);
  const { text, more } = unwrap(given);
  const explained =
    explainText(text, options) ??
    explainText(given.replace(/\r?\n$/, ''), options) ??
    explainMalformed(text, options.conf);
  if (!more) return explained;
  const message = 'More than one line was given; this is about the first.';
  return { ...explained, findings: [...explained.findings, finding('more_lines', message)] };
}

/** Takes prefixes off; parts are joined, and what never got its last part is taken as it is. */
function unwrap(given: string): { text: string; more: boolean } {
  const stripper = new PrefixStripper();
  const lines = given.split('\n').filter((line) => line !== '');
  for (const [i, line] of lines.entries()) {
    const text = stripper.push(line);
    if (text !== undefined) return { text, more: i + 1 < lines.length };
  }
  return { text: stripper.drain()[0] ?? '', more: false };
}

function explainText(text: string, options: ExplainOptions): Explanation | undefined {
  const line = parseErrorLine(text);
  if (line.kind !== 'malformed') return explainErrorLine(line, options);
  const bytes = Buffer.from(text, 'latin1');
  const scanners = scannersOf(options.conf).filter(
    (scanner) => scanner.scan(bytes, 0, bytes.length) < 0,
  );
  // A format of one open field fits anything: the more a format tells, the better it fits.
  const most = Math.max(...scanners.map((scanner) => scanner.variables.length));
  const [best, ...ties] = scanners.filter((scanner) => scanner.variables.length === most);
  if (best === undefined || text === '') return undefined;
  const explained = explainAccessLine(best, bytes, options.conf, options.showArgs ?? false);
  if (ties.length === 0) return explained;
  const names = ties.map((scanner) => readable(scanner.format.name)).join(', ');
  const message = `The line fits log_format ${names} as well.`;
  return { ...explained, findings: [...explained.findings, finding('format_tie', message)] };
}

/** The configuration's formats, then those that are known by name; equal ones once. */
function scannersOf(conf: NginxConf | undefined): LineScanner[] {
  const formats = [...(conf?.logFormats.values() ?? []), ...PREDEFINED_FORMATS];
  const distinct = new Map(formats.map((format) => [`${format.escape}:${format.text}`, format]));
  return [...distinct.values()].flatMap((format) => {
    try {
      return [compileLogFormat(format)];
    } catch (error) {
      // nginx refuses such a format too, so no line was written in it.
      if (error instanceof LogFormatError) return [];
      throw error;
    }
  });
}

function explainErrorLine(line: KnownErrorLine, options: ExplainOptions): Explanation {
  const explained = explainEvent(line, options);
  return {
    ...explained,
    time: line.timeText === '' ? null : line.timeText,
    level: line.level === '' ? null : line.level,
    // What nginx prints before it has a log names no process.
    pid: line.timeText === '' ? null : wholeOrNull(line.pid),
    connection: wholeOrNull(line.connection),
    truncated: line.truncated,
  };
}

/** A forged line can hold more digits than a number can. */
function wholeOrNull(value: number | null): number | null {
  return Number.isSafeInteger(value) ? value : null;
}

function explainEvent(line: KnownErrorLine, options: ExplainOptions): Explanation {
  const { conf, showArgs = false } = options;
  switch (line.kind) {
    case 'limiting_requests':
    case 'delaying_request':
    case 'limiting_connections':
      return explainLimitLine(line, conf, showArgs);
    case 'node_allocation_failed':
      return explainNodeFailure(line, conf);
    case 'slab_no_memory':
      return explainSlab(line, conf);
    case 'key_too_long':
      return explainKeyTooLong(line, conf);
    case 'process_mark':
      return explainMark(line);
    case 'other':
      return explainOther(line, line.level, showArgs);
    default:
      return explainRefusal(line);
  }
}

function explainMalformed(text: string, conf: NginxConf | undefined): Explanation {
  if (text === '') return blank('malformed', 'The line is empty.');
  const { column, expected } = whereItStops(text, conf);
  const found = quote(readable(text.slice(column - 1, column + 39)));
  const hint =
    conf === undefined ? ' With --conf the formats of a configuration are tried as well.' : '';
  return blank(
    'malformed',
    `Not a line of an error log, nor of an access log in a known format. Column ${column}: expected ${expected}, found ${found}.${hint}`,
  );
}

/** The reading that came furthest, of an error log's head or of a known format. */
function whereItStops(
  text: string,
  conf: NginxConf | undefined,
): { readonly column: number; readonly expected: string } {
  const head = parseErrorLine(text);
  const asError = head.kind === 'malformed' ? head : { column: 1, expected: 'a log line' };
  const bytes = Buffer.from(text, 'latin1');
  const detection = detectFormat([bytes], scannersOf(conf));
  const best = 'none' in detection ? detection.best : undefined;
  if (best === undefined || best.column <= asError.column) return asError;
  const { column, expected } = best;
  return {
    column,
    expected: `${expected} (log_format ${quote(readable(best.scanner.format.name))})`,
  };
}
