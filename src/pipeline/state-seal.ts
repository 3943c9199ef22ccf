/**
 * The state between two steps under a key: it holds whole keys and lines that wait, which rows may
 * not show (privacy.ts).
 *
 * AES-256-GCM with a key made of the secret (HKDF-SHA256), and a nonce of its own for each state.
 * Text: `sealed:` and base64 of 12 bytes of nonce, 16 of tag, and the packed state. Packed here,
 * because nothing packs what is encrypted. Not here: where states are kept.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { EXIT, InputError } from '../errors.js';

const MARK = 'sealed:';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = NONCE_BYTES + TAG_BYTES;
const GZIP_LEVEL = 3;

export class StateSeal {
  readonly #key: Buffer | undefined;

  /** @param secret none leaves states open */
  constructor(secret?: string) {
    this.#key =
      secret === undefined
        ? undefined
        : Buffer.from(hkdfSync('sha256', secret, '', 'limitlens state', 32));
  }

  /** @returns the state as it is kept */
  seal(state: string): string {
    if (this.#key === undefined) return state;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    const packed = gzipSync(state, { level: GZIP_LEVEL });
    const sealed = Buffer.concat([cipher.update(packed), cipher.final()]);
    return MARK + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
  }

  /**
   * Undoes seal(). A state that is not sealed is taken as it is: sealing can begin at any time.
   *
   * @throws InputError 78 for a state of another secret, or when there is none
   */
  open(kept: string): string {
    if (!kept.startsWith(MARK)) return kept;
    if (this.#key === undefined) {
      throw new InputError(
        'the state of the last step is sealed: give --privacy-key-file as before',
        EXIT.configuration,
      );
    }
    const bytes = Buffer.from(kept.slice(MARK.length), 'base64');
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const options = { authTagLength: TAG_BYTES };
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, options);
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, HEAD_BYTES));
    let packed: Buffer;
    try {
      packed = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]);
    } catch (error) {
      throw new InputError(
        'the state of the last step was sealed with another secret than that of --privacy-key-file\n' +
          '  Give the key file of before; without it the state is lost, and another --instance begins anew.',
        EXIT.configuration,
        { cause: error },
      );
    }
    return gunzipSync(packed).toString();
  }
}
