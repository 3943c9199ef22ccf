/**
 * Where the text of a configuration comes from: a file with its includes, or a `nginx -T` dump.
 *
 * Pure: whoever does the reading hands in a ConfLoader. Relative names resolve against the folder
 * of the main file, which is what nginx calls the configuration prefix.
 */
import { matchesGlob } from './glob.js';

/** The I/O side. Paths are handed in resolved; text is latin1. */
export interface ConfLoader {
  /** Text of a file, or undefined when there is none. */
  read(path: string): string | undefined;
  /** Paths that match, in the order of glob(3): sorted by bytes. None is not an error. */
  glob(pattern: string): readonly string[];
}

export interface DumpSection {
  readonly path: string;
  readonly text: string;
}

/** The folder of a file with its slash, or nothing for a bare name. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

/** As ngx_conf_full_name(): an absolute name stays, any other goes behind the prefix. */
export function fullName(prefix: string, name: string): string {
  return name.startsWith('/') ? name : prefix + name;
}

/**
 * Splits the output of `nginx -T`. Whatever precedes the first section (the verdict that nginx
 * prints on standard error, a shell prompt) is left out.
 *
 * @returns no section at all when the text is no dump
 */
export function splitDump(text: string): readonly DumpSection[] {
  const head = /^# configuration file (.+):\r?$/gm;
  const heads = [...text.matchAll(head)];
  return heads.map((match, i) => {
    const from = match.index + match[0].length + 1;
    const to = heads[i + 1]?.index ?? text.length;
    // nginx writes a line feed of its own behind every file.
    const body = text.slice(from, to);
    return { path: match[1]!, text: body.endsWith('\n') ? body.slice(0, -1) : body };
  });
}

/** Reads included files out of a dump, where each file stands once. */
export function dumpLoader(sections: readonly DumpSection[]): ConfLoader {
  const texts = new Map<string, string>();
  for (const { path, text } of sections) {
    if (!texts.has(path)) texts.set(path, text);
  }
  return {
    read: (path) => texts.get(path),
    glob: (pattern) => [...texts.keys()].filter((path) => matchesGlob(pattern, path)).sort(),
  };
}
