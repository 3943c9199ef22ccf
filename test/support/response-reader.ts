/**
 * Finds where one HTTP/1.1 response ends and the next begins on a connection.
 *
 * Knows what nginx sends to these tests: Content-Length, chunked, and statuses without a body.
 * Not here: HEAD requests, whose answers announce a body that never comes.
 */
const HEAD_END = Buffer.from('\r\n\r\n');

/** Feed it bytes in pieces of any size; it reports the status of each response once complete. */
export class ResponseReader {
  readonly #onResponse: (status: number) => void;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(onResponse: (status: number) => void) {
    this.#onResponse = onResponse;
  }

  push(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (;;) {
      const headEnd = this.#bytes.indexOf(HEAD_END);
      if (headEnd < 0) return;
      const head = this.#bytes.toString('latin1', 0, headEnd + 2);
      const end = responseEnd(this.#bytes, head, headEnd + HEAD_END.length);
      if (end === undefined) return;
      this.#bytes = this.#bytes.subarray(end);
      this.#onResponse(Number(head.slice(9, 12)));
    }
  }
}

/** The offset behind the response's body, or undefined while it is still under way. */
function responseEnd(bytes: Buffer, head: string, bodyStart: number): number | undefined {
  const length = /^content-length: (\d+)\r$/im.exec(head)?.[1];
  if (length !== undefined) {
    const end = bodyStart + Number(length);
    return end <= bytes.length ? end : undefined;
  }
  if (!/^transfer-encoding: chunked\r$/im.test(head)) return bodyStart;
  let at = bodyStart;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const sizeBytes = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (Number.isNaN(sizeBytes)) throw new Error('malformed chunk size in a response');
    at = lineEnd + 2 + sizeBytes + 2;
    if (at > bytes.length) return undefined;
    if (sizeBytes === 0) return at;
  }
}
