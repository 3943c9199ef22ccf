/**
 * Trying again, within bounds, what may succeed later: a network that failed, a server that was
 * restarting or short of memory.
 *
 * Safe because everything that limitlens sends can be repeated: inserts carry a deduplication
 * token, DDL says IF NOT EXISTS, the rest only reads. An error of type or syntax is never repeated;
 * it would only hide a bug for a few seconds.
 *
 * Units: milliseconds. Not here: what to tell the user in the end (store-errors.ts).
 */
import { setTimeout as delay } from 'node:timers/promises';

export interface RetryPolicy {
  /** How often the action is run at most, the first time included. */
  readonly attempts: number;
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** Injected by tests. */
  readonly wait: (ms: number) => Promise<unknown>;
  /** 0 ≤ x < 1; injected by tests. */
  readonly random: () => number;
}

export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 6,
  firstWaitMs: 200,
  longestWaitMs: 10_000,
  wait: (ms) => delay(ms),
  random: Math.random,
};

/** ClickHouse's error codes that pass by themselves, by their names in ErrorCodes.cpp. */
const PASSING_CODES: ReadonlyMap<string, string> = new Map([
  ['3', 'UNEXPECTED_END_OF_FILE'],
  ['202', 'TOO_MANY_SIMULTANEOUS_QUERIES'],
  ['209', 'SOCKET_TIMEOUT'],
  ['210', 'NETWORK_ERROR'],
  ['225', 'NO_ZOOKEEPER'],
  ['236', 'ABORTED'],
  ['241', 'MEMORY_LIMIT_EXCEEDED'],
  ['242', 'TABLE_IS_READ_ONLY'],
  ['252', 'TOO_MANY_PARTS'],
  ['279', 'ALL_CONNECTION_TRIES_FAILED'],
  ['285', 'TOO_FEW_LIVE_REPLICAS'],
  ['286', 'UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE'],
  ['319', 'UNKNOWN_STATUS_OF_INSERT'],
  ['999', 'KEEPER_EXCEPTION'],
]);

/** Node's and the client's codes of a connection that broke or was not taken. */
const PASSING_NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'EAI_AGAIN',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

/** The code of an error that ClickHouse itself reported, as text; undefined for any other error. */
export function clickHouseCode(error: unknown): string | undefined {
  // Not instanceof: the embedded connection throws the class of another copy of the client's code.
  const { code, type } = (error ?? {}) as { code?: unknown; type?: unknown };
  return typeof code === 'string' && typeof type === 'string' && /^\d+$/.test(code)
    ? code
    : undefined;
}

/** A network error by Node's code or by the client's own wording, which has no code. */
export function isNetworkError(error: unknown): boolean {
  if (!(error instanceof Error) || clickHouseCode(error) !== undefined) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return PASSING_NETWORK_CODES.has(code);
  return /^(Timeout error\.|socket hang up|aborted|The user aborted a request\.)/.test(
    error.message,
  );
}

/** Of a server that took the connection, or not even that, and then sent nothing: the client's words. */
export function isSilence(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Timeout error.');
}

/**
 * An answer of something that is not ClickHouse, such as a proxy's page for its 502. The client
 * hides the HTTP status and throws the body as a plain Error.
 */
export function isForeignAnswer(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'Error' &&
    (error as { code?: unknown }).code === undefined &&
    /^\s*(<|$)|\b50[0-4]\b|bad gateway|unavailable/i.test(error.message)
  );
}

/** Whether the same request may succeed later. */
export function mayPass(error: unknown): boolean {
  const code = clickHouseCode(error);
  if (code !== undefined) return PASSING_CODES.has(code);
  return isNetworkError(error) || isForeignAnswer(error);
}

/**
 * Runs an action until it succeeds, fails for good, or has failed `attempts` times; then the last
 * error is thrown as it came. Waits double from `firstWaitMs`, and are shortened at random by up to
 * half, so that several importers do not come back in step.
 */
export async function retry<T>(
  action: () => Promise<T>,
  policy: RetryPolicy,
  isPassing: (error: unknown) => boolean = mayPass,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      if (attempt >= policy.attempts || !isPassing(error)) throw error;
      const longest = Math.min(policy.longestWaitMs, policy.firstWaitMs * 2 ** (attempt - 1));
      await policy.wait(longest * (1 - policy.random() / 2));
    }
  }
}
