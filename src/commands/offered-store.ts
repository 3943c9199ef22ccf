/**
 * An open store offered to others: to limitlens' own commands, which can't open a folder that this
 * process has locked, and with --clickhouse-http to whatever speaks ClickHouse's protocol.
 *
 * Commands find a listener of their own on loopback by the address in the store's folder, whatever
 * --listen and its TLS are for. They need the daemon's token where it has one, else the key of this
 * run that stands beside the address.
 *
 * Not here: the protocol and what may be asked (../store-http, ../store/guarded-queries.ts).
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { EXIT, InputError } from '../errors.js';
import { readToken, type AccessChoice } from '../http/access.js';
import { parseListen } from '../http/listen-address.js';
import { HttpServer } from '../http/server.js';
import type { TlsChoice } from '../http/tls-files.js';
import { clickHouseRoutes } from '../store-http/clickhouse-routes.js';
import { leaveAddress } from '../store/daemon-address.js';
import type { GuardedQueries } from '../store/guarded-queries.js';
import type { Store } from '../store/store.js';
import { DEFAULT_CLICKHOUSE_HTTP_USER } from './defaults.js';
import { readSecretFile } from './secret-file.js';

const OPTION = '--clickhouse-http';
const PASSWORD_VARIABLE = 'LIMITLENS_CLICKHOUSE_HTTP_PASSWORD';
const SHORTEST_PASSWORD = 8;

export interface OfferChoice extends AccessChoice, TlsChoice {
  /** Address and port for ClickHouse's HTTP protocol. */
  readonly clickhouseHttp?: string;
  readonly clickhouseHttpUser?: string;
  readonly clickhouseHttpPasswordFile?: string;
  /** A server's URL: then there is nothing to offer. */
  readonly clickhouse?: string;
  readonly database?: string;
}

/** Everything that can be wrong without listening. @throws InputError 64, 66, 78 */
export function checkOfferChoice(
  choice: OfferChoice,
  env: NodeJS.ProcessEnv = process.env,
): { readonly password: string } | undefined {
  const { clickhouseHttp, clickhouseHttpPasswordFile: path } = choice;
  if (clickhouseHttp === undefined) {
    if (path === undefined) return undefined;
    throw new InputError(`${OPTION}-password-file: expected ${OPTION} with it`, EXIT.usage);
  }
  parseListen(clickhouseHttp, OPTION);
  if (choice.clickhouse !== undefined) {
    throw new InputError(
      `${OPTION}: expected an embedded store, found --clickhouse\n` +
        '  Whoever wants to ask that server can do so itself.',
      EXIT.usage,
    );
  }
  const password =
    path === undefined ? env[PASSWORD_VARIABLE] : readSecretFile(path, `${OPTION}-password-file`);
  if (password === undefined || password.length < SHORTEST_PASSWORD) {
    throw new InputError(
      `${OPTION}: expected a password of at least ${SHORTEST_PASSWORD} characters, found ` +
        `${password === undefined || password === '' ? 'none' : 'a shorter one'}\n` +
        `  Give it by ${OPTION}-password-file or ${PASSWORD_VARIABLE}.`,
      EXIT.configuration,
    );
  }
  return { password };
}

export interface OfferParts {
  readonly store: Store;
  readonly folder: string;
  readonly onError: (path: string, error: unknown) => void;
  readonly env?: NodeJS.ProcessEnv;
}

export class OfferedStore {
  /** Where --clickhouse-http listens. */
  readonly clickhouseUrl: string | undefined;
  readonly #queries: GuardedQueries;
  readonly #servers: readonly HttpServer[];
  readonly #parts: OfferParts;
  readonly #secrets: Secrets;
  #forget: () => void;

  private constructor(
    queries: GuardedQueries,
    servers: readonly HttpServer[],
    parts: OfferParts,
    secrets: Secrets,
  ) {
    this.#queries = queries;
    this.#servers = servers;
    this.#parts = parts;
    this.#secrets = secrets;
    this.clickhouseUrl = servers[1]?.url;
    this.#forget = this.#leaveAddress();
  }

  /**
   * @returns undefined for a store that is a server's
   * @throws InputError as checkOfferChoice(), 74 when an address cannot be listened on
   */
  static async open(choice: OfferChoice, parts: OfferParts): Promise<OfferedStore | undefined> {
    const env = parts.env ?? process.env;
    const secrets = readSecrets(choice, env, randomBytes(32).toString('hex'));
    const queries = parts.store.guardedQueries();
    if (queries === undefined) return undefined;
    const database = choice.database ?? 'limitlens';
    const servers: HttpServer[] = [];
    try {
      const start = async (
        listen: string,
        tls: TlsChoice,
        allows: (user: string, password: string) => boolean,
      ): Promise<void> => {
        const endpoint = { queries, database };
        const routes = clickHouseRoutes({
          ...endpoint,
          allows: ({ user, password }) => allows(user, password),
        });
        const { onError } = parts;
        const own = { listen, listenOption: OPTION, routes, onError, env: {} };
        servers.push(await HttpServer.start({ ...own, ...tls }));
      };
      await start('127.0.0.1:0', {}, (_, password) =>
        isSame(password, secrets.token ?? secrets.key),
      );
      if (secrets.password !== undefined) {
        const { tlsCert, tlsKey } = choice;
        const tls = { ...(tlsCert ? { tlsCert } : {}), ...(tlsKey ? { tlsKey } : {}) };
        await start(choice.clickhouseHttp!, tls, (user, password) => {
          const isUser = isSame(user, secrets.user);
          return isSame(password, secrets.password!) && isUser;
        });
      }
      return new OfferedStore(queries, servers, parts, secrets);
    } catch (error) {
      for (const server of servers) await server.close();
      await queries.close();
      throw error;
    }
  }

  /**
   * Takes up changed files of token, password and TLS.
   *
   * @param choice other files than before; whether and where it listens can't change
   * @throws InputError, and all stays as it was
   */
  reload(choice: OfferChoice): void {
    const secrets = readSecrets(choice, this.#parts.env ?? process.env, this.#secrets.key);
    const { tlsCert, tlsKey } = choice;
    this.#servers[1]?.reload({ ...(tlsCert ? { tlsCert } : {}), ...(tlsKey ? { tlsKey } : {}) });
    const hadToken = this.#secrets.token !== undefined;
    Object.assign(this.#secrets, secrets);
    if (hadToken !== (secrets.token !== undefined)) this.#forget = this.#leaveAddress();
  }

  /** Ends what runs; then the store may be closed. */
  async close(): Promise<void> {
    this.#forget();
    await Promise.all(this.#servers.map((server) => server.close()));
    await this.#queries.close();
  }

  /** With the key of this run, unless whoever asks has to know the token. */
  #leaveAddress(): () => void {
    const { token, key } = this.#secrets;
    const { url } = this.#servers[0]!;
    const address = { pid: process.pid, url, ...(token === undefined ? { key } : {}) };
    return leaveAddress(this.#parts.folder, address);
  }
}

/** What whoever asks has to know, as it is now. */
interface Secrets {
  token: string | undefined;
  /** Of this run, where there is no token. */
  readonly key: string;
  user: string;
  /** Undefined where --clickhouse-http is not given. */
  password: string | undefined;
}

/** @throws InputError as checkOfferChoice() */
function readSecrets(choice: OfferChoice, env: NodeJS.ProcessEnv, key: string): Secrets {
  return {
    token: readToken(choice.httpTokenFile, env),
    key,
    user: choice.clickhouseHttpUser ?? DEFAULT_CLICKHOUSE_HTTP_USER,
    password: checkOfferChoice(choice, env)?.password,
  };
}

function isSame(given: string, known: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(known));
}
