/**
 * What is noted about an event on its way through the replay, and the marks that stand in for a key
 * id or tell one kind of interval from another.
 *
 * Units: milliseconds. A flag's number is stored in snapshots: none changes its meaning.
 *
 * Not here: what the log says happened (status.ts).
 */
export const FLAG = {
  /** Came after its decision time had been passed. */
  late: 1,
  /** Known from the error log alone. */
  errorOnly: 2,
  /** Rejected because a zone had no page for its node. */
  exhausted: 4,
  /** Passed only because its zone had forgotten the key's debt. */
  admittedByEviction: 8,
  /** nginx answered before its limits were asked. */
  early: 16,
  /** Waits at the start of its interval; judged at its estimate. */
  wide: 32,
  /** Not a request: a reload or restart, in its place among them. */
  control: 64,
  /** The log does not carry the outcome; it was inferred, and is not reported as logged. */
  inferred: 128,
  /** The time is known to the second only. */
  coarse: 256,
  /** Rejected because a limit_conn zone had no room for its node. */
  connExhausted: 512,
  /** A "limiting connections" line was found for it. */
  connLine: 1024,
  /** Its lines are joined and its outcome is inferred. */
  settled: 2048,
  /** Other requests of a key may have come before or after. */
  openOrder: 4096,
  /** The zone was full: whether the key was still known depends on the order of others. */
  nearEviction: 8192,
  /** The key may have been in debt before the log begins. */
  warm: 16384,
  /** Its details are kept until it is decided. */
  detailed: 32768,
  /** What took it so long came after the limits, as long as headers are not slow as a rule. */
  afterLimits: 65536,
} as const;

/** keyId of a limit whose key is empty: nginx skips it. */
export const NO_KEY = -1;
/** keyId of a limit whose key cannot be derived from what is logged. */
export const UNKNOWN_KEY = -2;
/** An interval longer than this is no matter of clocks: the header came slowly. */
export const WIDE_MS = 4;
/** Events whose interval is no longer than this were decided when they were created. */
export const NARROW_MS = 1;
