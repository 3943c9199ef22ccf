/**
 * Inheritance: from what each level sets to what is in force at it.
 *
 * After the merge functions of the limit, log, core and realip modules. A list (limits, logs,
 * trusted addresses) that a level sets replaces the inherited one as a whole; single values are
 * inherited one by one.
 */
import { ConfError } from './conf-error.js';
import type { Draft, Level, LocationDraft, ServerDraft } from './level.js';
import type { LocationNode, RealIp, RuleSet, ServerConf } from './model.js';

export interface Effective {
  readonly servers: readonly ServerConf[];
  readonly ruleSets: readonly RuleSet[];
}

/** Gives every server and location its rules, numbered in order of appearance. */
export function mergeLevels(draft: Draft): Effective {
  const merge = new Merge(draft);
  const servers = draft.servers.map((server, id) => merge.server(server, id));
  return { servers, ruleSets: merge.ruleSets };
}

class Merge {
  readonly ruleSets: RuleSet[] = [];
  private readonly upper: readonly Level[];

  constructor(draft: Draft) {
    this.upper = draft.http === undefined ? [draft.main] : [draft.http, draft.main];
  }

  server(server: ServerDraft, id: number): ServerConf {
    const chain = [server.level, ...this.upper];
    const names = server.names.length === 0 ? [''] : server.names;
    const serverName = primaryName(names[0]!);
    const rules = this.rules(chain, serverName, '');
    refuseDuplicates(server.locations);
    return {
      id,
      names,
      // Without a listen nginx takes port 80, or 8000 when it is not started by root.
      listens:
        server.listens.length === 0
          ? [{ text: '*:80', port: 80, isDefaultServer: false }]
          : server.listens,
      mergeSlashes: first(chain, (level) => level.mergeSlashes) ?? true,
      realIp: realIpOf(chain),
      rules,
      locations: server.locations.map((child) => this.location(child, chain, serverName)),
      where: server.level.where,
    };
  }

  private location(
    location: LocationDraft,
    outer: readonly Level[],
    serverName: string,
  ): LocationNode {
    const chain = [location.level, ...outer];
    const modifier = MODIFIERS[location.kind];
    const text = modifier === '' ? location.pattern : `${modifier} ${location.pattern}`;
    const rules = this.rules(chain, serverName, text);
    refuseDuplicates(location.children);
    return {
      kind: location.kind,
      pattern: location.pattern,
      rules,
      children: location.children.map((child) => this.location(child, chain, serverName)),
      where: location.level.where,
    };
  }

  private rules(chain: readonly Level[], serverName: string, location: string): RuleSet {
    const level = chain[0]!;
    const server = chain.find((outer) => outer.context === 'server')!;
    const logs = chain.find((outer) => outer.accessLogs ?? outer.accessLogOffWhere);
    const offWhere = logs?.accessLogOffWhere;
    const rules: RuleSet = {
      id: this.ruleSets.length,
      serverName,
      location,
      limits: first(chain, (outer) => outer.limits) ?? [],
      limitReqStatus: first(chain, (outer) => outer.limitReqStatus) ?? 503,
      limitReqDryRun: first(chain, (outer) => outer.limitReqDryRun) ?? false,
      limitReqLogLevel: first(chain, (outer) => outer.limitReqLogLevel) ?? 'error',
      connLimits: first(chain, (outer) => outer.connLimits) ?? [],
      limitConnStatus: first(chain, (outer) => outer.limitConnStatus) ?? 503,
      limitConnDryRun: first(chain, (outer) => outer.limitConnDryRun) ?? false,
      limitConnLogLevel: first(chain, (outer) => outer.limitConnLogLevel) ?? 'error',
      // `off` beside other logs on one level wins.
      accessLogs: offWhere === undefined ? (logs?.accessLogs ?? []) : [],
      errorLogs: first(chain, (outer) => outer.errorLogs) ?? [],
      ...defined('accessLogOffWhere', offWhere),
      // The server's rewrite directives run first, and for every one of its locations.
      ...defined('returnWhere', server.returnWhere ?? level.returnWhere),
      ...defined(
        'internalWhere',
        first(chain, (outer) => outer.internalWhere),
      ),
      ...defined('rewriteWhere', server.rewriteWhere ?? level.rewriteWhere),
      ...defined('asksAuth', first(chain, (outer) => outer.asksAuth) === true || undefined),
      ...defined('leadsTo', redirectTargets(chain)),
      where: level.where,
    };
    this.ruleSets.push(rules);
    return rules;
  }
}

const MODIFIERS: Readonly<Record<LocationNode['kind'], string>> = {
  exact: '=',
  prefix: '',
  'prefix-no-regex': '^~',
  regex: '~',
  'regex-nocase': '~*',
  named: '',
};

function first<T>(chain: readonly Level[], pick: (level: Level) => T | undefined): T | undefined {
  for (const level of chain) {
    const value = pick(level);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** error_page is inherited as a whole; try_files is its level's own. */
function redirectTargets(chain: readonly Level[]): readonly string[] | undefined {
  const pages = first(chain, (outer) => outer.errorPages) ?? [];
  const targets = [...(chain[0]!.tryFiles ?? []), ...pages].filter((text) => /^[/$]/.test(text));
  return targets.length === 0 ? undefined : targets;
}

function defined<K extends string, V>(name: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [P in K]?: V });
}

/** $server_name: the first name, without a leading dot; the tilde of an expression stays. */
function primaryName(name: string): string {
  return name.startsWith('.') ? name.slice(1) : name;
}

function realIpOf(chain: readonly Level[]): RealIp | null {
  const from = first(chain, (level) => level.realIpFrom);
  if (from === undefined) return null;
  return {
    from,
    header: first(chain, (level) => level.realIpHeader) ?? 'X-Real-IP',
    recursive: first(chain, (level) => level.realIpRecursive) ?? false,
  };
}

/** The check of ngx_http_join_exact_locations(): `=` may stand beside a prefix, others may not. */
function refuseDuplicates(locations: readonly LocationDraft[]): void {
  const seen = new Set<string>();
  for (const { kind, pattern, end } of locations) {
    if (kind === 'named' || kind === 'regex' || kind === 'regex-nocase') continue;
    const key = `${kind === 'exact' ? '=' : ''} ${pattern}`;
    if (seen.has(key)) throw new ConfError(end, `duplicate location "${pattern}"`);
    seen.add(key);
  }
}
