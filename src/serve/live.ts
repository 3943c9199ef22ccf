/**
 * Tells open pages that there is something new: a stream of server-sent events with a version.
 *
 * The version changes with every commit to the store, whoever made it. It is asked for every few
 * seconds while somebody listens, once for all of them.
 */
import type { ServerResponse } from 'node:http';
import { SECURITY_HEADERS } from '../http/reply.js';
import { HttpError, type HttpRequest } from '../http/route.js';

/** Open pages beyond that get 503, and still work by hand. */
const MOST_LISTENERS = 64;
/** Proxies and browsers drop a connection on which nothing comes. */
const KEEP_ALIVE_MS = 15_000;

export interface LiveOptions {
  readonly readVersion: () => Promise<string>;
  readonly pollMs: number;
}

export class Live {
  readonly #options: LiveOptions;
  readonly #listeners = new Set<ServerResponse>();
  #version: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whoever rests ends its round of questions; the next listener begins another. */
  #round = 0;
  #quietMs = 0;
  #closing: AbortSignal | undefined;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  /** Answers with the stream. @throws HttpError 503 */
  listen(request: HttpRequest, response: ServerResponse): undefined {
    if (this.#listeners.size >= MOST_LISTENERS) {
      throw new HttpError(503, 'too many pages listen already');
    }
    const headers = { ...SECURITY_HEADERS, 'Content-Type': 'text/event-stream' };
    // nginx in front would hold events back.
    response.writeHead(200, { ...headers, 'X-Accel-Buffering': 'no' });
    response.write('retry: 3000\n\n');
    if (this.#version !== undefined) response.write(eventOf(this.#version));
    this.#listeners.add(response);
    response.once('close', () => {
      this.#listeners.delete(response);
      if (this.#listeners.size === 0) this.#rest();
    });
    this.#endWith(request.closing);
    if (this.#listeners.size === 1) void this.#poll(this.#round);
    return undefined;
  }

  /** One server, one signal: however many have come and gone. */
  #endWith(closing: AbortSignal): void {
    if (this.#closing === closing) return;
    this.#closing = closing;
    const end = (): void => {
      for (const listener of this.#listeners) listener.end();
    };
    closing.addEventListener('abort', end, { once: true });
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#round++;
    this.#version = undefined;
  }

  async #poll(round: number): Promise<void> {
    // A store that does not answer is told by the panels.
    const version = await this.#options.readVersion().catch(() => this.#version);
    if (this.#round !== round) return;
    this.#quietMs += this.#options.pollMs;
    if (version !== undefined && version !== this.#version) {
      this.#version = version;
      this.#write(eventOf(version));
    } else if (this.#quietMs >= KEEP_ALIVE_MS) {
      this.#write(':\n\n');
    }
    this.#timer = setTimeout(() => void this.#poll(round), this.#options.pollMs);
  }

  #write(text: string): void {
    this.#quietMs = 0;
    for (const listener of this.#listeners) listener.write(text);
  }
}

function eventOf(version: string): string {
  return `event: version\ndata: ${JSON.stringify(version)}\n\n`;
}
