/**
 * Who may ask: a bearer token, or users with passwords, from files; nobody need say anything where
 * neither is given.
 *
 * Compared in a time that depends on no secret. A browser can't send a bearer token by itself, so
 * the token is also taken as the password of the user `token`.
 *
 * Not here: which paths need it (server.ts).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { EXIT, InputError } from '../errors.js';

const TOKEN_USER = 'token';
/** A token shorter than this can be guessed. */
const SHORTEST_TOKEN = 16;

export interface AccessChoice {
  readonly httpTokenFile?: string;
  readonly httpBasicFile?: string;
}

export class Access {
  readonly #token: Buffer | undefined;
  readonly #logins: readonly Buffer[];

  /** @param logins as `user:password` */
  constructor(token: string | undefined, logins: readonly string[]) {
    this.#token = token === undefined ? undefined : digest(token);
    const all = token === undefined ? logins : [...logins, `${TOKEN_USER}:${token}`];
    this.#logins = all.map(digest);
  }

  /** Whether anything has to be said at all. */
  get isNeeded(): boolean {
    return this.#logins.length > 0;
  }

  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** @param authorization the header of that name */
  allows(authorization: string | undefined): boolean {
    if (!this.isNeeded) return true;
    const [, scheme, word] = /^(\w+) +(\S+) *$/.exec(authorization ?? '') ?? [];
    if (scheme?.toLowerCase() === 'bearer') {
      return this.#token !== undefined && timingSafeEqual(this.#token, digest(word!));
    }
    if (scheme?.toLowerCase() !== 'basic') return false;
    const given = digest(Buffer.from(word!, 'base64').toString());
    let isKnown = false;
    for (const login of this.#logins) isKnown = timingSafeEqual(login, given) || isKnown;
    return isKnown;
  }
}

/** Equal lengths, whatever was given. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/**
 * Reads the files. LIMITLENS_TOKEN is the token where no file is named.
 *
 * @throws InputError 66 for a file that is not there, 78 for what can be no token or login
 */
export function readAccess(choice: AccessChoice, env: NodeJS.ProcessEnv): Access {
  const { httpTokenFile, httpBasicFile } = choice;
  const logins = httpBasicFile === undefined ? [] : readLogins(httpBasicFile);
  return new Access(readToken(httpTokenFile, env), logins);
}

/** @throws InputError as readAccess() */
export function readToken(path: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const token = path === undefined ? env['LIMITLENS_TOKEN'] : readSecret(path).trim();
  if (token === undefined || (path === undefined && token === '')) return undefined;
  if (/^[\x21-\x7e]+$/.test(token) && token.length >= SHORTEST_TOKEN) return token;
  throw new InputError(
    `${path ?? 'LIMITLENS_TOKEN'}: expected a token of at least ${SHORTEST_TOKEN} visible ASCII characters\n` +
      '  Make one: openssl rand -hex 32',
    EXIT.configuration,
  );
}

function readLogins(path: string): string[] {
  const lines = readSecret(path).split(/\r?\n/);
  const logins = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const refuse = (line: number, found: string): InputError =>
    new InputError(
      `${path}:${line}: expected user:password, found ${found}\n` +
        '  One login a line, the password as it is typed; the file readable by limitlens alone.',
      EXIT.configuration,
    );
  if (logins.length === 0) throw refuse(1, 'no login');
  for (const [i, line] of lines.entries()) {
    if (!logins.includes(line)) continue;
    const [, password] = /^[^:]+:(.+)$/.exec(line) ?? [];
    if (password === undefined) throw refuse(i + 1, 'something else');
    if (/^(?:\$\w{1,6}\$|\{[A-Z0-9]+\})/.test(password)) throw refuse(i + 1, 'a hashed password');
  }
  return logins;
}

/** @throws InputError 66 */
export function readSecret(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const { code = 'unreadable' } = cause as NodeJS.ErrnoException;
    throw new InputError(`${path}: expected a file to read, found none (${code})`, EXIT.noInput, {
      cause,
    });
  }
}
