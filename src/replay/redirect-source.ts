/**
 * Where a request came from that was answered under another URI than its own.
 *
 * A log with $uri alone shows the last one: that of the file which try_files found, or of an error
 * page. The limits were asked where the request came in (ngx_http_limit_req_handler() asks once per
 * request), so a decision logged for a location without limits was taken in a location that leads
 * there. The configuration names those; where several with different limits do, it stays open.
 *
 * Not here: rewrite, which changes the location before the limits, and X-Accel-Redirect, whose
 * target is the upstream's.
 */
import type { LocationNode, RuleSet, ServerConf } from '../../parsers/conf/model.js';

interface Leader {
  readonly rules: RuleSet;
  readonly targets: readonly RegExp[];
}

/** The locations of one server that have limits, with the URIs that they lead to. */
export class RedirectSource {
  readonly #leaders: readonly Leader[];

  constructor(server: ServerConf) {
    this.#leaders = ruleSetsOf(server)
      .filter((rules) => rules.limits.length > 0)
      .map((rules) => ({ rules, targets: (rules.leadsTo ?? []).flatMap(patternsOf) }))
      .filter(({ targets }) => targets.length > 0);
  }

  /** Whether any location of the server leads to others. */
  get isEmpty(): boolean {
    return this.#leaders.length === 0;
  }

  /** The rule set under which a request answered as `uri` came in; undefined where that is open. */
  find(uri: string): RuleSet | undefined {
    const found = this.#leaders.filter(({ targets }) => targets.some((one) => one.test(uri)));
    const first = found[0]?.rules;
    if (first === undefined) return undefined;
    return found.every(({ rules }) => isAlike(rules, first)) ? first : undefined;
  }
}

function ruleSetsOf(server: ServerConf): RuleSet[] {
  const found = [server.rules];
  const visit = (nodes: readonly LocationNode[]): void => {
    for (const { rules, children } of nodes) {
      found.push(rules);
      visit(children);
    }
  };
  visit(server.locations);
  return found;
}

/** A target as written: variables stand for anything, arguments are no part of the URI. */
function patternsOf(target: string): RegExp[] {
  const path = target.split(/\?|\$is_args/, 1)[0]!;
  // A file under the request's own URI is no other one.
  if (path === '' || path === '$uri' || path === '$document_uri') return [];
  const parts = path
    .split(/\$\{?\w+\}?/)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  // A directory is answered with its index.
  return [new RegExp(`^${parts.join('.*')}${path.endsWith('/') ? '[^/]*' : ''}$`)];
}

function isAlike(a: RuleSet, b: RuleSet): boolean {
  return (
    a === b ||
    (JSON.stringify(a.limits.map(bare)) === JSON.stringify(b.limits.map(bare)) &&
      a.limitReqStatus === b.limitReqStatus &&
      a.limitReqDryRun === b.limitReqDryRun)
  );
}

function bare(limit: RuleSet['limits'][number]): readonly unknown[] {
  return [limit.zone, limit.burstMilliReq, limit.delayMilliReq];
}
