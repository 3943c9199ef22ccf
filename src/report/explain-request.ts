/**
 * Text of a log line for people: bytes to characters, and secrets left out.
 *
 * Query strings carry tokens, and so do `user:password@` in addresses, referrers and upstream
 * URLs. Both are taken out here, once, so that no output has to think of it.
 *
 * Not here: escaping for a terminal (explain-text.ts), and JSON, which escapes by itself.
 */
import type { RequestText } from '../../parsers/error/error-line.js';
import type { ExplainedRequest } from './explanation.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The line as the parsers want it: latin1, one character a byte.
 *
 * A line with characters beyond a byte was decoded before (a terminal, a JSON body): it is encoded
 * again. Any other is taken as bytes already.
 */
export function toLatin1(line: string): string {
  return /[^\0-\xff]/.test(line) ? Buffer.from(line, 'utf8').toString('latin1') : line;
}

/** Bytes as text: UTF-8 where it is that, else one character a byte, so that nothing is lost. */
export function readable(latin1: string): string {
  if (!/[\x80-\xff]/.test(latin1)) return latin1;
  try {
    return utf8.decode(Buffer.from(latin1, 'latin1'));
  } catch {
    return latin1;
  }
}

/** readable(), for a value that may be absent. */
export function readableOrNull(latin1: string | null): string | null {
  return latin1 === null ? null : readable(latin1);
}

/** A request line without its arguments, or with them when they were asked for. */
export function explainRequest(
  request: RequestText | null,
  showArgs: boolean,
): ExplainedRequest | null {
  if (request === null) return null;
  const isRequest = request.method !== null;
  // Behind a `#`, and in what is no request, a `?` may begin a secret as well.
  const hasArgs = request.target.includes('?');
  const known = {
    method: request.method,
    target: readable(withoutUser(cutArgs(request.target))),
    path: isRequest ? readable(withoutUser(request.path)) : null,
    protocol: request.protocol,
    hasArgs,
  };
  if (!showArgs) return known;
  const args = hasArgs ? request.target.slice(request.target.indexOf('?') + 1) : null;
  return { ...known, args: readableOrNull(args) };
}

/** A URL or a message, cut at its first `?`. */
export function redact(latin1: string, showArgs: boolean): string {
  if (showArgs) return readable(latin1);
  const at = latin1.indexOf('?');
  return readable(withoutUser(at < 0 ? latin1 : `${latin1.slice(0, at)}?`)) + (at < 0 ? '' : '…');
}

function cutArgs(target: string): string {
  const at = target.indexOf('?');
  return at < 0 ? target : target.slice(0, at);
}

function withoutUser(url: string): string {
  return url.replace(/\/\/[^/\s"@]*@/g, '//');
}
