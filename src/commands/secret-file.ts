/**
 * Secrets come from files or the environment, never from a configuration or a command line, which
 * others on the machine can read.
 */
import { readFileSync } from 'node:fs';
import { EXIT, InputError } from '../errors.js';

/**
 * What a file holds, without the newline at its end.
 *
 * @param option how the file was given, for messages
 * @throws InputError 78 when it cannot be read or is empty
 */
export function readSecretFile(path: string, option: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new InputError(
      `${option} ${path}: cannot be read (${code})\n  Expected a file that holds the secret, readable for the user that limitlens runs as.`,
      EXIT.configuration,
      { cause: error },
    );
  }
  if (text !== '') return text;
  throw new InputError(`${option} ${path}: expected a secret, found nothing`, EXIT.configuration);
}
