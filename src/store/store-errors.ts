/**
 * What a failing store means, in words for the person who runs limitlens.
 *
 * Not here: errors of type or syntax. They are bugs of ours, keep ClickHouse's text and their stack.
 */
import { EXIT, InputError, quote, type ExitCode } from '../errors.js';
import { clickHouseCode, isForeignAnswer, isNetworkError } from './retry.js';

interface Meaning {
  readonly exitCode: ExitCode;
  readonly found: string;
  readonly hint: string;
}

const WRONG_LOGIN: Meaning = {
  exitCode: EXIT.configuration,
  found: 'the server refused the user or the password',
  hint: 'Give them in the URL (https://USER:PASSWORD@HOST:8443) or as CLICKHOUSE_USER and CLICKHOUSE_PASSWORD.',
};

/** By ClickHouse's error codes, names as in its ErrorCodes.cpp. */
const BY_CODE: ReadonlyMap<string, Meaning> = new Map([
  ['516', WRONG_LOGIN],
  ['192', WRONG_LOGIN],
  ['193', WRONG_LOGIN],
  ['194', WRONG_LOGIN],
  [
    '497',
    {
      exitCode: EXIT.configuration,
      found: 'the user has no right to do this',
      hint: 'Grant it SELECT, INSERT, CREATE and ALTER on the database, or use another user.',
    },
  ],
  [
    '164',
    {
      exitCode: EXIT.configuration,
      found: 'the user is read-only and may not change settings',
      hint: 'Use a user whose profile has readonly = 2 (for reports) or 0 (for imports).',
    },
  ],
  [
    '159',
    {
      exitCode: EXIT.io,
      found: 'the query took longer than it may',
      hint: 'Ask for a shorter time with --since and --until.',
    },
  ],
  [
    '241',
    {
      exitCode: EXIT.io,
      found: 'the engine has no memory left',
      hint: 'Ask for a shorter time, or give ClickHouse more memory.',
    },
  ],
  [
    '243',
    {
      exitCode: EXIT.io,
      found: 'no space is left on the disk',
      hint: 'Free some, and run the same command again: nothing is counted twice.',
    },
  ],
]);

const UNREACHABLE = 'Check the address, and that ClickHouse’s HTTP interface listens there.';

/**
 * The error to throw for a failed request: an InputError where a person can do something, the
 * original where it is a bug.
 *
 * @param where the store's name in messages
 */
export function storeError(error: unknown, where: string): Error {
  const original = error instanceof Error ? error : new Error(String(error));
  if (original instanceof InputError) return original;
  const code = clickHouseCode(error);
  const meaning = code === undefined ? networkMeaning(original) : BY_CODE.get(code);
  if (meaning === undefined) return original;
  const expected = 'expected a store that answers';
  return new InputError(
    `${where}: ${expected}, but ${meaning.found}\n  ${meaning.hint}`,
    meaning.exitCode,
    { cause: original },
  );
}

function networkMeaning(error: Error): Meaning | undefined {
  const code = (error as { code?: unknown }).code;
  const text = typeof code === 'string' ? code : error.message;
  if (/^(Timeout error|The user aborted)/.test(text) || code === 'ETIMEDOUT') {
    return { exitCode: EXIT.io, found: 'it did not answer in time', hint: UNREACHABLE };
  }
  if (isNetworkError(error) || code === 'ENOTFOUND') {
    return { exitCode: EXIT.io, found: `the connection failed (${text})`, hint: UNREACHABLE };
  }
  if (typeof code === 'string' && /CERT|SSL|TLS|EPROTO|SELF_SIGNED/.test(code)) {
    return {
      exitCode: EXIT.io,
      found: `TLS failed (${text})`,
      hint: 'Check http against https, and trust the certificate with NODE_EXTRA_CA_CERTS.',
    };
  }
  if (isForeignAnswer(error)) {
    return {
      exitCode: EXIT.io,
      found: `something that is not ClickHouse answered ${quote(text)}`,
      hint: UNREACHABLE,
    };
  }
  return undefined;
}
