/**
 * Every kind of finding of `limitlens check`: its code, what it looks for, and why that matters.
 *
 * Codes are stable: scripts and issue trackers refer to them. The text on the right is what every
 * finding of a code shares; what is particular to one stands in its message.
 *
 * Not here: severities, which depend on the case.
 */
export const CODES = {
  'access-log-off-under-limit':
    'Requests that no log holds still fill the zone: what a replay says of its occupancy and of ' +
    'its evictions is a lower bound.',
  'burst-zero':
    'Without burst the limit is a spacing, not a count: nginx refuses the second of two requests ' +
    'that come closer together than 1/rate, however few there are in a second or a minute.',
  'conditional-access-log':
    'What the condition leaves out still fills the zone: what a replay says of excess, occupancy ' +
    'and evictions is a lower bound.',
  'default-status-503':
    'A 503 of the limiter looks like a 503 of an upstream or of an overloaded server. ' +
    '429 tells clients, load balancers and the access log who it was, and that to come back ' +
    'later helps.',
  'delay-longer-than-patience':
    'Without nodelay nginx holds a request back until its turn comes. A client that gives up ' +
    'before that has its place in the queue charged all the same (499 DELAYED).',
  'dry-run-on':
    'Under dry run nginx counts and logs, but lets every request pass. `limitlens dry-run` says ' +
    'whether it is safe to switch it off.',
  'error-log-level-hides':
    'The lines about limits carry the exact excess, which pins a replay down. nginx writes ' +
    'delays one level below limit_req_log_level, and drops lines below the level of error_log.',
  'key-can-be-empty':
    'nginx skips a zone when its key is empty: such a request is neither counted nor limited by it.',
  'key-client-controlled':
    'A client that writes another value into its request gets a fresh key, without debt: it is ' +
    'not limited, and its keys push those of others out of the zone.',
  'key-long':
    'nginx keeps the whole key. Up to 48 bytes cost a limit_req zone 128 bytes a key; longer ' +
    'ones take the next power of two, and above 1968 bytes whole pages.',
  'limit-conn-without-status-log':
    'Without $limit_conn_status in the access log, what limit_conn refused cannot be told from ' +
    'what limit_req, an upstream or nginx itself refused with the same status.',
  'limits-not-inherited':
    'limit_req and limit_conn are inherited only by a level that has no such line of its own: ' +
    'the inner list replaces the outer one, it does not add to it.',
  'log-format-lacks-fields': 'A replay is as exact as what is logged. What a missing field costs:',
  'mixed-key-lengths':
    'A zone hands out memory in pages of one slot size each. When short keys hold all pages, a ' +
    'long key finds none: "could not allocate node" in the main error log, and the request is ' +
    'refused although its client did nothing.',
  'nodelay-without-burst':
    'nodelay lets the requests within burst pass at once; without burst there are none, and ' +
    'it does nothing. The second of two requests closer together than 1/rate is refused.',
  'not-evaluated':
    'limitlens does not follow this, so its answers about the requests concerned may be off.',
  'rate-truncated':
    'nginx keeps rates in thousandths of a request per second and cuts off the rest. A number ' +
    'of requests per minute that is a multiple of three is exact.',
  'real-ip-missing':
    'Behind a proxy $remote_addr is the address of the proxy. All clients then share one key, ' +
    'and are limited together.',
  'real-ip-trusts-all':
    'When every peer is trusted, any client chooses its own address with a header, and with it ' +
    'a fresh key.',
  'return-before-limit':
    'return answers in the rewrite phase, before limit_req and limit_conn are asked. To limit ' +
    'such an answer as well, lead there with try_files to a named location that holds the return.',
  'zone-shared-by-rules':
    'Rules on one zone share the debt of a key, each with its own thresholds: what a rule with a ' +
    'large burst lets in, one with a small burst refuses for.',
  'zone-too-small':
    'A full limit_req zone forgets its oldest key, debt and all, without a line in any log: that ' +
    'client starts afresh. A full limit_conn zone refuses every new key.',
  'zone-unused':
    'The zone takes memory and limits nothing. Perhaps every level that its limit was written ' +
    'for has a list of its own.',
} as const satisfies Readonly<Record<string, string>>;

export type CheckCode = keyof typeof CODES;
