/**
 * Lines about the memory of zones, and about keys too long to be stored there.
 *
 * `could not allocate node` is limit_req's own (ngx_http_limit_req_lookup()); the slab allocator's
 * `no memory` comes from whichever pool was full, named by its log_ctx, so it says something about
 * limits only when that pool is a limit's zone. nginx before 1.5.13 used it for limit_req as well.
 */

export interface NodeAllocationFailed {
  readonly kind: 'node_allocation_failed';
  /** null in versions that do not name it. */
  readonly zone: string | null;
}

export interface SlabNoMemory {
  readonly kind: 'slab_no_memory';
  readonly pool: {
    /** `limit_conn_zone`, `limit_req zone`, `shared zone`, `upstream zone`, … as in the line. */
    readonly what: string | null;
    readonly zone: string | null;
  };
}

/** The request was not limited by this zone, because its key is too long. */
export interface KeyTooLong {
  readonly kind: 'key_too_long';
  /** The key as the configuration writes it. */
  readonly keyExpression: string;
  readonly limitBytes: number;
  readonly module: 'limit_req' | 'limit_conn';
}

const NODE = /^could not allocate node(?: in limit_req zone "([^"]*)")?/;
const SLAB = /^ngx_slab_alloc\(\) failed: no memory(?: in ([^",]*?) "([^"]*)"| in ([^",]+))?/;
const KEY = /^the value of the "(.*?)" key is more than (\d+) bytes/;
/** Of ngx_http_limit_conn_handler(); limit_req allows 65535. */
const LONGEST_CONN_KEY_BYTES = 255;

/** Reads a message; undefined when it is not about memory or key length. */
export function parseZoneMemory(
  message: string,
): NodeAllocationFailed | SlabNoMemory | KeyTooLong | undefined {
  const node = NODE.exec(message);
  if (node !== null) return { kind: 'node_allocation_failed', zone: node[1] ?? null };
  const slab = SLAB.exec(message);
  if (slab !== null) {
    const pool = { what: slab[1] ?? slab[3] ?? null, zone: slab[2] ?? null };
    return { kind: 'slab_no_memory', pool };
  }
  const key = KEY.exec(message);
  if (key === null) return undefined;
  const limitBytes = Number(key[2]);
  return {
    kind: 'key_too_long',
    keyExpression: key[1]!,
    limitBytes,
    module: limitBytes === LONGEST_CONN_KEY_BYTES ? 'limit_conn' : 'limit_req',
  };
}
