/**
 * An nginx configuration from disk: the I/O side of parsers/conf.
 *
 * Files are read as latin1, one character per byte, for nginx knows no encoding either. Patterns
 * of `include` are expanded as glob(3) does it: sorted by bytes, none is fine.
 */
import { readdirSync, readFileSync } from 'node:fs';

import { ConfError } from '../../parsers/conf/conf-error.js';
import { hasWildcard, segmentPattern } from '../../parsers/conf/glob.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { parseConf, parseConfDump } from '../../parsers/conf/read-conf.js';
import { folderOf, splitDump, type ConfLoader } from '../../parsers/conf/source.js';
import { EXIT, InputError } from '../errors.js';
import { statusOf } from './path-status.js';

/**
 * Reads a configuration file with its includes, or a file that holds the output of `nginx -T`.
 *
 * @param path the main file; which of the two it is, is told by its content
 * @param options prefix: folder that relative includes resolve against, when the file is a copy
 *   and lies elsewhere than on the server; its own folder by default
 * @throws InputError exit 66 when a file cannot be read, 78 for what nginx refuses
 */
export function loadConf(path: string, options: { prefix?: string } = {}): NginxConf {
  const text = readConfFile(path);
  if (text === undefined) {
    throw new InputError(
      `${path}: no such file\n  Expected an nginx configuration, or the output of nginx -T.`,
      EXIT.noInput,
    );
  }
  try {
    if (isDump(text)) return parseConfDump(path, text);
    return parseConf(path, FILES, prefixOf(path, options.prefix));
  } catch (error) {
    if (error instanceof ConfError) throw inputError(error);
    throw error;
  }
}

/** What stands before the first section of a dump, if anything, is what nginx said on stderr. */
function isDump(text: string): boolean {
  if (splitDump(text).length === 0) return false;
  const head = text.slice(0, text.search(/^# configuration file /m));
  return head.split('\n').every((line) => /^(?:$|nginx: |\d{4}\/)/.test(line.trim()));
}

function prefixOf(path: string, prefix: string | undefined): string {
  if (prefix === undefined) return folderOf(path);
  return prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
}

function inputError(error: ConfError): InputError {
  const hint = error.reason.startsWith('open() ')
    ? 'Give the file with its includes beside it, or save the output of nginx -T and give that.'
    : 'nginx refuses this configuration too; nginx -t says the same.';
  return new InputError(`${error.message}\n  ${hint}`, EXIT.configuration, { cause: error });
}

const FILES: ConfLoader = { read: readConfFile, glob: expandGlob };

function readConfFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new InputError(
      `${path}: cannot be read (${code})\n  Expected an nginx configuration file.`,
      EXIT.noInput,
      { cause: error },
    );
  }
}

/** Paths that match, segment by segment; folders that cannot be listed match nothing. */
function expandGlob(pattern: string): readonly string[] {
  let found = [pattern.startsWith('/') ? '/' : ''];
  const segments = pattern.split('/').filter((segment) => segment !== '');
  for (const [i, segment] of segments.entries()) {
    const slash = i < segments.length - 1 ? '/' : '';
    found = found.flatMap((folder) =>
      namesIn(folder, segment)
        .map((name) => `${folder}${name}${slash}`)
        .filter((path) => isThere(path)),
    );
  }
  return found.sort(compareBytes);
}

function namesIn(folder: string, segment: string): readonly string[] {
  if (!hasWildcard(segment)) return [segment];
  const wanted = segmentPattern(segment);
  try {
    return readdirSync(folder === '' ? '.' : folder).filter((name) => wanted.test(name));
  } catch {
    return [];
  }
}

function isThere(path: string): boolean {
  return statusOf(path) !== undefined;
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
