/**
 * The body of a request, within a bound also after it was unpacked.
 */
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { HttpError } from './route.js';

const unpack = promisify(gunzip);

/** @throws HttpError 413 when it is larger, 415 for an encoding other than gzip, 400 for a broken one */
export async function readBody(request: IncomingMessage, mostBytes: number): Promise<Buffer> {
  const tooLarge = (): HttpError =>
    new HttpError(413, `expected at most ${mostBytes} bytes`, { Connection: 'close' });
  if (Number(request.headers['content-length'] ?? 0) > mostBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw tooLarge();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity' || body.length === 0) return body;
  if (encoding !== 'gzip') throw new HttpError(415, 'expected no Content-Encoding other than gzip');
  try {
    return await unpack(body, { maxOutputLength: Math.max(1, mostBytes) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new HttpError(400, 'expected a body that gzip can unpack');
  }
}
