/**
 * A webhook that answers as it is told, and remembers what it was sent.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Cleanup } from './temp-dir.js';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A status, with headers; `hang` for no answer at all. */
export type Answer = number | readonly [status: number, headers: Record<string, string>] | 'hang';

export class WebhookReceiver {
  readonly received: Received[] = [];
  readonly url: string;
  /** Answers of the next requests; 200 when there are none left. */
  answers: Answer[] = [];
  #more: () => void = () => undefined;

  private constructor(url: string) {
    this.url = url;
  }

  static async open(t: Cleanup): Promise<WebhookReceiver> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        receiver.received.push({ path: request.url ?? '', headers: request.headers, body });
        const answer = receiver.answers.shift() ?? 200;
        receiver.#more();
        if (answer === 'hang') return;
        const [status, headers] = typeof answer === 'number' ? [answer, {}] : answer;
        response.writeHead(status, headers);
        response.end(status === 200 ? 'ok' : 'not now');
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    const receiver = new WebhookReceiver(
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/secret?a=b`,
    );
    return receiver;
  }

  /** Waits until this many requests have come in all. */
  async count(requests: number): Promise<readonly Received[]> {
    while (this.received.length < requests) {
      await new Promise<void>((resolve) => {
        this.#more = resolve;
      });
    }
    return this.received;
  }
}
