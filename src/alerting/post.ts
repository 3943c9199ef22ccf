/**
 * One POST of JSON to a receiver, and what its answer means.
 *
 * Not here: when to try again (webhook.ts, alertmanager.ts).
 */
import { EXIT, InputError, quote } from '../errors.js';

const ANSWER_MS = 10_000;
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/** Of an answer's body, for the log. */
const MOST_BODY = 200;

export interface Receiver {
  /** Without login. */
  readonly url: string;
  /** For metrics and messages: a webhook's path is often its secret. */
  readonly name: string;
  readonly authorization?: string;
}

export type PostResult =
  | { readonly isTaken: true }
  | {
      readonly isTaken: false;
      /** One line for the log. */
      readonly error: string;
      /** Undefined when there was no answer. */
      readonly status?: number;
      /** What the receiver asked for in Retry-After. */
      readonly retryAfterMs?: number;
    };

/**
 * `http(s)://[user[:password]@]host[:port][/path]`.
 *
 * @param option how a message names it
 * @throws InputError 64
 */
export function parseReceiver(option: string, text: string): Receiver {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new InputError(
      `${option}: expected a URL like http://127.0.0.1:9093, found ${quote(withoutLogin(text))}`,
      EXIT.usage,
    );
  }
  const login = [url.username, url.password].map(decodeURIComponent).join(':');
  url.username = '';
  url.password = '';
  url.hash = '';
  const authorization = login === ':' ? {} : { authorization: basicAuthorization(login) };
  return { url: url.href, name: url.origin, ...authorization };
}

/** @param login `user:password` */
export function basicAuthorization(login: string): string {
  return `Basic ${Buffer.from(login).toString('base64')}`;
}

/** Messages must not show a password. */
function withoutLogin(text: string): string {
  return text.replace(/\/\/[^/]*@/, '//');
}

/** Never throws. @param signal ends it early */
export async function postJson(
  receiver: Receiver,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  nowMs: () => number = Date.now,
): Promise<PostResult> {
  const { url, authorization } = receiver;
  try {
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'limitlens',
        ...(authorization === undefined ? {} : { authorization }),
        ...headers,
      },
      // Whoever is sent elsewhere is not the one that was signed for.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    if (response.ok) {
      await response.body?.cancel();
      return { isTaken: true };
    }
    const text = (await response.text()).slice(0, MOST_BODY);
    const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'), nowMs());
    return {
      isTaken: false,
      error: `answered ${response.status}${text === '' ? '' : `: ${quote(text, MOST_BODY)}`}`,
      status: response.status,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
  } catch (error) {
    return { isTaken: false, error: reasonOf(error) };
  }
}

/** Seconds or a date, as RFC 9110 has it; within an hour. */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), LONGEST_RETRY_AFTER_MS);
}

/** fetch() hides what happened in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${ANSWER_MS / 1000} s`;
  const cause = error.cause instanceof Error ? error.cause : error;
  const { code } = cause as NodeJS.ErrnoException;
  return cause.message === '' ? (code ?? cause.name) : cause.message;
}
