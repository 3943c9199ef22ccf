/**
 * `--privacy…`: what import and tail store of addresses, keys and query strings.
 */
import { EXIT, InputError } from '../errors.js';
import { Privacy } from '../pipeline/privacy.js';
import { StateSeal } from '../pipeline/state-seal.js';
import { readSecretFile } from './secret-file.js';

export interface PrivacyChoice {
  readonly privacy?: 'keep' | 'truncate' | 'hash';
  readonly privacyKeys?: 'addresses' | 'all';
  readonly privacyIpv4Prefix?: number;
  readonly privacyIpv6Prefix?: number;
  readonly privacyKeyFile?: string;
}

/** Whoever knows the hash of one address and a short secret finds the secret by trying. */
const LEAST_SECRET = 16;

/**
 * @returns how rows are made private, and how the state is sealed: with a key file always
 * @throws InputError 64 without a key file where one is needed, 78 for one that is no use
 */
export function privacyOf(choice: PrivacyChoice): {
  readonly privacy: Privacy;
  readonly seal: StateSeal;
} {
  const { privacy: addresses = 'keep', privacyKeys: keys = 'addresses' } = choice;
  const { privacyIpv4Prefix: ipv4Bits = 24, privacyIpv6Prefix: ipv6Bits = 48 } = choice;
  const { privacyKeyFile: path } = choice;
  const isPrivate = addresses !== 'keep' || keys === 'all';
  if (isPrivate && path === undefined) {
    throw new InputError(
      '--privacy needs --privacy-key-file FILE: between two steps the limiter has to remember whole\n' +
        '  addresses, and keeps them under that key. To make one: openssl rand -hex 32 > FILE',
      EXIT.usage,
    );
  }
  const secret = path === undefined ? undefined : readSecretFile(path, '--privacy-key-file');
  if (secret !== undefined && secret.length < LEAST_SECRET) {
    throw new InputError(
      `--privacy-key-file ${path}: expected at least ${LEAST_SECRET} characters, found ${secret.length}`,
      EXIT.configuration,
    );
  }
  const privacy = new Privacy({ addresses, keys, ipv4Bits, ipv6Bits, secret: secret ?? '' });
  return { privacy, seal: new StateSeal(secret) };
}
