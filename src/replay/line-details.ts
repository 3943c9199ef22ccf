/**
 * What only some uses need of a request: to show it, or to name it.
 *
 * Not here: what the replay itself needs (line-facts.ts).
 */
import type { AccessFields } from './access-fields.js';

/** What only some uses need of a request. */
export interface RequestDetails {
  readonly requestId: string | null;
  readonly method: string;
  readonly path: string;
  readonly client: string;
}

/** Details of a line that is kept, read when they are asked for: few are. */
export class LineDetails implements RequestDetails {
  /** latin1: a string costs less to keep for a while than bytes do. */
  readonly #text: string;
  readonly #fields: AccessFields;

  constructor(text: string, fields: AccessFields) {
    this.#text = text;
    this.#fields = fields;
  }

  get requestId(): string | null {
    return this.#fields.requestId(this.#scan());
  }

  get method(): string {
    return this.#fields.method(this.#scan());
  }

  get path(): string {
    return this.#fields.path(this.#scan());
  }

  get client(): string {
    return this.#fields.client(this.#scan());
  }

  toJSON(): RequestDetails {
    const { requestId, method, path, client } = this;
    return { requestId, method, path, client };
  }

  #scan(): Uint8Array {
    const line = Buffer.from(this.#text, 'latin1');
    this.#fields.scanner.scan(line, 0, line.length);
    return line;
  }
}
