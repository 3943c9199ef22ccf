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
  readonly #line: Uint8Array;
  readonly #fields: AccessFields;

  constructor(line: Uint8Array, fields: AccessFields) {
    this.#line = line;
    this.#fields = fields;
  }

  get requestId(): string | null {
    return this.#scanned().requestId(this.#line);
  }

  get method(): string {
    return this.#scanned().method(this.#line);
  }

  get path(): string {
    return this.#scanned().path(this.#line);
  }

  get client(): string {
    return this.#scanned().client(this.#line);
  }

  toJSON(): RequestDetails {
    const { requestId, method, path, client } = this;
    return { requestId, method, path, client };
  }

  #scanned(): AccessFields {
    this.#fields.scanner.scan(this.#line, 0, this.#line.length);
    return this.#fields;
  }
}
