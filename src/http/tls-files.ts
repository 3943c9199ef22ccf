/**
 * The certificate and its key, from files.
 */
import { createSecureContext } from 'node:tls';
import { EXIT, InputError } from '../errors.js';
import { readSecret } from './access.js';

export interface TlsChoice {
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

export interface TlsPair {
  /** PEM, with the chain. */
  readonly cert: string;
  readonly key: string;
}

/**
 * @returns undefined when neither is named
 * @throws InputError 64 for one without the other, 66 for a missing file, 78 for no such pair
 */
export function readTls({ tlsCert, tlsKey }: TlsChoice): TlsPair | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new InputError('--tls-cert and --tls-key: expected both, found one', EXIT.usage);
  }
  const pair = { cert: readSecret(tlsCert), key: readSecret(tlsKey) };
  try {
    createSecureContext(pair);
  } catch (cause) {
    throw new InputError(
      `${tlsCert}, ${tlsKey}: expected a certificate and its key as PEM, found none that fit ` +
        `(${(cause as Error).message})`,
      EXIT.configuration,
      { cause },
    );
  }
  return pair;
}
