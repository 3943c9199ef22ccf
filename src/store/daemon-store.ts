/**
 * The store of a running daemon, asked over HTTP in the place of the folder that it has locked.
 *
 * Not here: who holds the folder (embedded.ts), where the daemon listens (daemon-address.ts).
 */
import { EXIT, InputError } from '../errors.js';
import { makeServerClient } from './client.js';
import type { DaemonAddress } from './daemon-address.js';
import type { EngineParts } from './engine.js';
import { clickHouseCode } from './retry.js';
import { storeError } from './store-errors.js';

/** Any name does; the key is what counts. */
const USER = 'limitlens';

/**
 * @param env LIMITLENS_TOKEN is used where the daemon asks for its token
 * @throws InputError 78 for a missing or wrong token, 74 when the daemon does not answer
 */
export async function openDaemonStore(
  path: string,
  address: DaemonAddress,
  database: string,
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<Pick<EngineParts, 'where' | 'writer' | 'reader'>> {
  const password = address.key ?? env['LIMITLENS_TOKEN'] ?? '';
  const needsToken = (found: string): InputError =>
    new InputError(
      `${path}: the daemon that has it open (pid ${address.pid}) expects its token, found ${found}\n` +
        '  Set LIMITLENS_TOKEN to the token that the daemon was started with.',
      EXIT.configuration,
    );
  if (password === '') throw needsToken('none');
  const options = { url: address.url, username: USER, password, database, compress: false };
  const client = makeServerClient(options);
  try {
    const abort_signal = AbortSignal.timeout(timeoutMs);
    await client
      .query({ query: 'SELECT 1', format: 'JSONEachRow', abort_signal })
      .then((result) => result.text());
  } catch (error) {
    await client.close();
    if (clickHouseCode(error) === '516') throw needsToken('another one');
    throw storeError(error, `${path} (asked at ${address.url})`);
  }
  return { where: path, writer: client, reader: client };
}
