/**
 * What the logs of one call carry, as far as an analysis has to say what it could not know.
 */
export interface LogTraits {
  readonly hasAccessLog: boolean;
  readonly hasErrorLog: boolean;
  /** In every access log, as all below. */
  readonly hasMilliseconds: boolean;
  readonly hasRequestTime: boolean;
  readonly hasLimitReqStatus: boolean;
  readonly hasPath: boolean;
}

/** Sentences, each with the field that would tell. */
export function retryUnknowns(traits: LogTraits): string[] {
  const unknowns = [
    'Whether a request is a retry: nginx logs none. The next request of the same key counts as the ' +
      "key's return, also where several clients share the key.",
  ];
  if (!traits.hasAccessLog) {
    unknowns.push(
      'Returns that were let through at once: an error log has refused and delayed requests alone, ' +
        'and whole seconds. Give the access log, with $msec, $request_time and $limit_req_status.',
    );
    return unknowns;
  }
  if (!traits.hasMilliseconds) {
    unknowns.push(
      'Returns within the same second, and whether a second more or less was too soon: log $msec.',
    );
  }
  if (traits.hasMilliseconds && !traits.hasRequestTime) {
    unknowns.push(
      'When requests came, for those that took long: the end stands for it. Log $request_time.',
    );
  }
  if (!traits.hasLimitReqStatus && !traits.hasErrorLog) {
    unknowns.push(
      'Which answers were refusals of limit_req: taken from the status, so that an upstream may ' +
        'have given some. Log $limit_req_status, or give the error log.',
    );
  }
  if (!traits.hasPath) {
    unknowns.push('Whether the same request came again: log $request.');
  }
  return unknowns;
}
