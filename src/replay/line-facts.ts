/**
 * What a replay needs of one access-log line, as numbers and key bytes.
 *
 * Between reading a line and judging it: whoever reads (here or in another thread) fills it in, the
 * feed takes it up. One object serves for all lines. -1 stands for absent, times are milliseconds.
 */
/** `header`: before the limits were asked. `after`: on the request's body, or on a long answer. */
export const SLACK = { unknown: 0, header: 1, after: 2 } as const;

const FIRST_KEY_BYTES = 256;

export class LineFacts {
  /** When the request ended, $msec; the start of its second where that is all there is. */
  endMs = 0;
  /** $request_time, -1 when it is not logged. */
  requestMs = -1;
  upstreamMs = -1;
  /** What the time was spent on that was not the upstream's, where that can be told. */
  slack: number = SLACK.unknown;
  httpStatus = -1;
  /** STATUS codes of $limit_req_status and $limit_conn_status. */
  limitReqStatus = 0;
  limitConnStatus = 0;
  upstreamStatus = -1;
  connection = -1;
  connectionRequests = -1;
  pid = -1;
  /** Rule set in the common numbering; -1 when it can't be told, -2 when nginx refused the request. */
  rules = -1;
  /** Limits of the rule set, in order; each has a key. */
  keyCount = 0;
  /** Length of each key's bytes: 0 for an empty key, -1 when the line does not tell it. */
  readonly keyLengths = new Int32Array(64);
  /** Where each key begins in keyBytes. */
  readonly keyStarts = new Int32Array(64);
  /** Length that nginx's node has for each key. */
  readonly nodeKeyLengths = new Int32Array(64);
  keyBytes: Uint8Array = new Uint8Array(FIRST_KEY_BYTES);
  /** Keys are told by their ids in the zones' tables, not by their bytes. */
  hasKeyIds = false;
  /** Id of each key whose length is above 0; between threads, its number (src/keys/key-numbers.ts). */
  readonly keyIds = new Int32Array(64);
  /** Between threads: each key's numbering and zone, and whether its number is new, 1 or 0. */
  readonly keyNumberings = new Int32Array(64);
  readonly keyZones = new Int32Array(64);
  readonly isNewKey = new Uint8Array(64);
}
