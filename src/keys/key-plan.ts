/**
 * The key of a zone, evaluated for each line of an access log.
 *
 * A plan is made once for a key expression and a log_format; evaluating it copies bytes from the
 * line into one buffer and allocates nothing, except for a $uri that needs normalising and for
 * what a map sees for the first time.
 *
 * Not here: which rules a request falls under, and giving keys ids (key-table.ts).
 */
import type { FieldOffsets, Line } from './byte-range.js';
import { KeyWriter } from './key-writer.js';
import { isMissing, type KeyContext, type Missing, VariablePlanner } from './variables.js';
import type { ValueNode } from './value-node.js';

export type { FieldOffsets } from './byte-range.js';
export type { KeyContext } from './variables.js';

export interface KeyPlan {
  /**
   * Writes the key of the line just scanned into `out`.
   *
   * @returns its length in bytes; 0 for an empty key, with which nginx skips the zone; -1 when this
   * line does not tell the key
   */
  evaluate(bytes: Uint8Array, fields: FieldOffsets): number;
  /** Holds the last key in its first bytes. Another buffer once a key did not fit. */
  readonly out: Uint8Array;
  /** Length of the last key in nginx, where $binary_remote_addr is 4 or 16 bytes, not text. */
  readonly keyLengthBytes: number;
  /**
   * The one field that the key follows from, as a place in the format: the same bytes there mean the
   * same key. -1 when it takes more.
   */
  readonly field: number;
}

export interface MissingFields {
  /** Variables that the log_format lacks, without the dollar. Empty when logging would not help. */
  readonly missing: readonly string[];
  /** What to do about it: `log $http_x_api_key (zone perapi's key)`. */
  readonly why: string;
}

/**
 * Finds out how a key is had from the fields of a log_format.
 *
 * Follows ngx_http_complex_value() and the variables' own handlers.
 *
 * @param expression as in the configuration: `$binary_remote_addr$request_method`
 */
export function planKey(
  expression: string,
  context: KeyContext,
): { readonly plan: KeyPlan } | MissingFields {
  const planned = new VariablePlanner(context).plan(expression);
  if (isMissing(planned)) return explain(expression, context, planned);
  return { plan: new WrittenKey(planned) };
}

function explain(expression: string, context: KeyContext, missing: Missing): MissingFields {
  const whose = context.zone === undefined ? `the key ${expression}` : `zone ${context.zone}'s key`;
  const fields = missing.fields.map((name) => `$${name}`).join(', ');
  const advice = fields === '' ? `cannot tell ${whose}` : `log ${fields} (${whose})`;
  return { missing: missing.fields, why: [advice, ...missing.reasons].join('; ') };
}

class WrittenKey implements KeyPlan {
  private readonly value: ValueNode;
  private readonly writer = new KeyWriter('text');
  readonly field: number;
  private readonly line: Line = { bytes: new Uint8Array(0), fields: NO_FIELDS };

  constructor(value: ValueNode) {
    this.value = value;
    this.field = value.field ?? -1;
  }

  get out(): Uint8Array {
    return this.writer.bytes;
  }

  get keyLengthBytes(): number {
    return this.writer.nginxLength;
  }

  evaluate(bytes: Uint8Array, fields: FieldOffsets): number {
    const { line, writer } = this;
    line.bytes = bytes;
    line.fields = fields;
    writer.reset();
    return this.value.write(line, writer) ? writer.length : -1;
  }
}

const NO_FIELDS: FieldOffsets = { starts: new Int32Array(0), ends: new Int32Array(0) };
