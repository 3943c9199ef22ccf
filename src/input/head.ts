/**
 * The beginning of a log: enough to tell what it is, and to know it again.
 *
 * A log is known by its content: the hash of its first bytes (more than one line: two files can
 * begin alike) and of the last bytes that were read of it. Rotation renames it, compression changes
 * its bytes on disk, growth its length; none of them changes those.
 */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, fstatSync, readSync, type Stats } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { EXIT, InputError } from '../errors.js';
import { gzipError, openFile } from './file-lines.js';
import { statusOf } from './path-status.js';

/** Bytes looked at to tell the format: some thousand lines. */
export const SAMPLE_BYTES = 1 << 19;
/** Bytes of content that identify a log. */
export const HEAD_BYTES = 4096;

export interface LogHead {
  readonly path: string;
  readonly isGzip: boolean;
  /** The first SAMPLE_BYTES of content, or less. */
  readonly sample: Uint8Array;
  /** Size on disk, for the progress bar. */
  readonly sizeBytes: number;
}

/**
 * Reads a log's beginning, through gunzip where it is gzipped.
 *
 * @throws InputError 66 for a file that is missing or unreadable, or a directory; 65 for gzip data of
 *   which nothing can be unpacked
 */
export async function readHead(path: string): Promise<LogHead> {
  // To open a named pipe would wait for somebody to write to it.
  refuseOthers(path, statusOf(path));
  const fd = openFile(path);
  try {
    const status = fstatSync(fd);
    refuseOthers(path, status);
    const raw = new Uint8Array(SAMPLE_BYTES);
    const read = readFully(fd, raw);
    const isGzip = raw[0] === 0x1f && raw[1] === 0x8b;
    const sample = isGzip ? await gunzipHead(path) : raw.subarray(0, read);
    return { path, isGzip, sample, sizeBytes: status.size };
  } finally {
    closeSync(fd);
  }
}

/** @throws InputError 66 for what has no beginning to come back to */
function refuseOthers(path: string, status: Stats | undefined): void {
  if (status?.isDirectory() === true) {
    throw new InputError(`${path}: is a directory, expected a log file`, EXIT.noInput);
  }
  if (status?.isFIFO() === true || status?.isSocket() === true) {
    throw new InputError(
      `${path}: is a pipe or a socket, expected a log file\n` +
        '  What comes through a pipe is read from standard input: … | limitlens … -',
      EXIT.noInput,
    );
  }
}

function readFully(fd: number, into: Uint8Array): number {
  let filled = 0;
  while (filled < into.length) {
    const read = readSync(fd, into, filled, into.length - filled, filled);
    if (read === 0) break;
    filled += read;
  }
  return filled;
}

/** As much of the content as can be had; a damaged file is reported when it is read in full. */
async function gunzipHead(path: string): Promise<Uint8Array> {
  const gunzip = createGunzip();
  pipeline(createReadStream(path), gunzip, () => undefined);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= SAMPLE_BYTES) break;
    }
  } catch (error) {
    // The lines up to the damage are worth having; whoever reads on meets the same error.
    if (length === 0) throw gzipError(path, 0, error);
  }
  gunzip.destroy();
  return Buffer.concat(chunks).subarray(0, SAMPLE_BYTES);
}

/** The sample's complete lines, without their newlines. */
export function sampleLines(sample: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let start = 0;
  for (let at = sample.indexOf(0x0a); at >= 0; at = sample.indexOf(0x0a, start)) {
    lines.push(sample.subarray(start, at));
    start = at + 1;
  }
  if (start < sample.length && lines.length === 0) lines.push(sample.subarray(start));
  return lines;
}

/** Hash of content, for HEAD_BYTES and tails. */
export function hashBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}
