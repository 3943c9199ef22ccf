/**
 * The captures of real nginx under test/traces and test/fixtures, for tests that read all of them.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LogFormat } from '../../parsers/access/line-scanner.js';

/** Directories of captures, relative to the root of the repository. */
export function captureDirectories(): string[] {
  return ['test/traces', 'test/fixtures'].flatMap((parent) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(parent, entry.name))
      .filter((directory) => existsSync(join(directory, 'nginx.conf'))),
  );
}

/** Complete lines of a file, without their newlines. */
export function linesOf(path: string): Buffer[] {
  const bytes = readFileSync(path);
  const lines: Buffer[] = [];
  for (let from = 0, to; (to = bytes.indexOf(0x0a, from)) >= 0; from = to + 1) {
    lines.push(bytes.subarray(from, to));
  }
  return lines;
}

/**
 * The format of an access log of a capture. The captures write each log_format in one line, and
 * name access logs by absolute path, so a regular expression is enough here.
 */
export function formatOf(directory: string, logName: string): LogFormat {
  const conf = readFileSync(join(directory, 'nginx.conf'), 'utf8');
  const use = new RegExp(`access_log \\S*/${logName.replace('.', '\\.')} (\\w+);`).exec(conf);
  const name = use?.[1] ?? '';
  const definition = new RegExp(`log_format ${name} (?:escape=(\\w+) )?'([^']*)';`).exec(conf);
  if (definition === null) throw new Error(`${directory}: no log_format for ${logName}`);
  const [, escape = 'default', text = ''] = definition;
  return { name, escape: escape as LogFormat['escape'], text };
}
