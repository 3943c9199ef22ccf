/**
 * Which fields a replay needs of an access log, and the log_format that has them all.
 *
 * What each field is for is measured (decision times, order) or follows from how lines are
 * matched; see src/replay.
 */
import { predefinedFormat } from '../../parsers/access/predefined.js';
import type {
  LimitConnZone,
  LimitReqZone,
  LogFormatConf,
  NginxConf,
  RuleSet,
  ServerConf,
} from '../../parsers/conf/model.js';
import { variablesOf } from '../../parsers/conf/variables.js';
import { planKey } from '../keys/key-plan.js';
import { freeName } from './key-checks.js';
import type { Level, Survey } from './survey.js';

export interface MissingField {
  /** Without the dollar. */
  readonly name: string;
  /** Without it verdicts are not just less exact, but missing or wrong. */
  readonly isEssential: boolean;
  /** What it costs to do without, as a sentence without a full stop. */
  readonly cost: string;
}

/** What there is to know about the log of a level: which servers write to it. */
export interface LogUse {
  readonly level: Level;
  readonly writers: readonly ServerConf[];
}

interface NeededField extends MissingField {
  /** Fields that serve as well. */
  readonly or?: readonly string[];
  readonly isNeeded?: (use: LogUse) => boolean;
}

const hasLimits = ({ level }: LogUse): boolean => level.rules.limits.length > 0;

const NEEDED: readonly NeededField[] = [
  {
    name: 'msec',
    isEssential: true,
    cost: 'without $msec times are known to the second, and excess only within wide bounds',
  },
  {
    name: 'request_time',
    isEssential: true,
    cost: 'without $request_time the end of a request is taken for its decision',
  },
  {
    name: 'status',
    isEssential: true,
    cost: 'without $status nobody knows what the client was told',
  },
  {
    name: 'limit_req_status',
    isEssential: true,
    isNeeded: hasLimits,
    cost: 'without $limit_req_status a verdict cannot be compared with what nginx did',
  },
  {
    name: 'request',
    or: ['request_uri', 'uri', 'document_uri'],
    isEssential: true,
    isNeeded: ({ level }) => level.server.locations.length > 0,
    cost: 'without $request the location, and so the limits, cannot be told',
  },
  {
    name: 'server_name',
    or: ['host', 'http_host'],
    isEssential: true,
    isNeeded: ({ writers }) => writers.length > 1,
    cost: 'without $server_name the servers that write to this log cannot be told apart',
  },
  {
    name: 'server_port',
    isEssential: true,
    isNeeded: ({ level, writers }) =>
      writers.some(
        (other) =>
          other !== level.server &&
          other.names[0] === level.server.names[0] &&
          other.listens.some(({ port }) => level.server.listens.every((l) => l.port !== port)),
      ),
    cost: 'without $server_port servers of one name cannot be told apart',
  },
  {
    name: 'connection',
    isEssential: false,
    cost: 'without $connection lines of the error log are matched by client, request and second',
  },
  {
    name: 'connection_requests',
    isEssential: false,
    cost: 'without $connection_requests the order within a connection is guessed',
  },
  {
    name: 'pid',
    isEssential: false,
    cost: 'without $pid the workers of before and after a reload are mixed up',
  },
  {
    name: 'upstream_status',
    isEssential: false,
    cost: 'without $upstream_status a 429 or 503 of an upstream may be taken for one of nginx itself',
  },
  {
    name: 'upstream_response_time',
    isEssential: false,
    cost: 'without $upstream_response_time slow headers blur the decision time',
  },
];

/** Variables of a format, in lower case, in order. */
export function variablesOfFormat(format: Pick<LogFormatConf, 'text'>): readonly string[] {
  return variablesOf(format.text).map((name) => name.toLowerCase());
}

/** A zone whose key no log can tell. */
export interface UntellableKey {
  readonly zone: LimitReqZone | LimitConnZone;
  readonly why: string;
}

/** A format with everything: limitlens's own, and what the keys of this configuration need. */
export interface ReplayFormat {
  readonly name: string;
  /** null when the configuration has it already. */
  readonly line: string | null;
  readonly untellable: readonly UntellableKey[];
}

/** What the formats of one configuration lack. Plans of keys are remembered: maps can be large. */
export class ReplayFields {
  readonly #survey: Survey;
  readonly #keyFields = new Map<string, readonly string[]>();

  constructor(survey: Survey) {
    this.#survey = survey;
  }

  /** The fields that a level's log lacks, those for the keys of its limits included. */
  missing(use: LogUse, format: LogFormatConf): readonly MissingField[] {
    const logged = new Set(variablesOfFormat(format));
    const missing: MissingField[] = NEEDED.filter(
      ({ name, or = [], isNeeded }) =>
        isNeeded?.(use) !== false && ![name, ...or].some((field) => logged.has(field)),
    );
    const known = new Set(missing.map(({ name }) => name));
    for (const zone of this.#zonesOf(use.level.rules)) {
      for (const name of this.#missingForKey(zone, use.level, format)) {
        if (known.has(name)) continue;
        known.add(name);
        const cost = `without $${name} the keys of zone "${zone.name}" are unknown`;
        missing.push({ name, isEssential: true, cost });
      }
    }
    return missing;
  }

  /** The format to propose for this configuration. */
  complete(): ReplayFormat {
    const { conf, limitedLevels, connUses } = this.#survey;
    const uses = limitedLevels.map((level) => ({ level, writers: conf.servers }));
    const own = [...conf.logFormats.values()].find(
      (format) =>
        (connUses.length === 0 || variablesOfFormat(format).includes('limit_conn_status')) &&
        uses.every((use) => this.missing(use, format).length === 0),
    );
    if (own !== undefined) {
      return { name: own.name, line: null, untellable: this.#untellable(own) };
    }
    const isTaken = (wanted: string): boolean =>
      [...conf.logFormats.keys()].some((known) => known.toLowerCase() === wanted);
    const name = freeName('limitlens', isTaken);
    const base: LogFormatConf = { name, escape: 'default', text: baseText(conf), where: null };
    const extra = new Set(
      uses.flatMap((use) => this.missing(use, base).map((field) => field.name)),
    );
    const fields = [...extra].map((field) => ` ${field}="$${field}"`).join('');
    const text = `${base.text}${fields}`;
    const line = `log_format ${name} '${text}';`;
    return { name, line, untellable: this.#untellable({ ...base, text }) };
  }

  #untellable(format: LogFormatConf): readonly UntellableKey[] {
    return this.#survey.zones.flatMap(({ zone, uses }) => {
      const level = uses[0]?.levels[0];
      if (level === undefined) return [];
      const planned = this.#plan(zone, level, format);
      return 'plan' in planned ? [] : [{ zone, why: planned.why }];
    });
  }

  #missingForKey(
    zone: LimitReqZone | LimitConnZone,
    level: Level,
    format: LogFormatConf,
  ): readonly string[] {
    const { rules, server } = level;
    const isRewritten = rules.rewriteWhere !== undefined;
    const settings = [format.escape, server.mergeSlashes, isRewritten, rules.serverName];
    const cacheKey = JSON.stringify([zone.keyExpression, format.text, ...settings]);
    const known = this.#keyFields.get(cacheKey);
    if (known !== undefined) return known;
    const planned = this.#plan(zone, level, format);
    const missing = 'plan' in planned ? [] : planned.missing;
    this.#keyFields.set(cacheKey, missing);
    return missing;
  }

  #plan(
    zone: LimitReqZone | LimitConnZone,
    { rules, server }: Level,
    format: LogFormatConf,
  ): ReturnType<typeof planKey> {
    return planKey(zone.keyExpression, {
      conf: this.#survey.conf,
      zone: zone.name,
      variables: variablesOfFormat(format),
      escape: format.escape,
      constants: { server_name: rules.serverName },
      mergeSlashes: server.mergeSlashes,
      isRewritten: rules.rewriteWhere !== undefined,
    });
  }

  #zonesOf({ limits, connLimits }: RuleSet): readonly (LimitReqZone | LimitConnZone)[] {
    const { reqZones, connZones } = this.#survey.conf;
    return [
      ...limits.map(({ zone }) => reqZones.get(zone)!),
      ...connLimits.map(({ zone }) => connZones.get(zone)!),
    ];
  }
}

function baseText(conf: NginxConf): string {
  const { text } = predefinedFormat('limitlens')!;
  // $realip_remote_addr is there only in an nginx that was built with the realip module.
  const hasRealIp = conf.servers.some(({ realIp }) => realIp !== null);
  return hasRealIp ? text : text.replace('realip_remote_addr="$realip_remote_addr" ', '');
}
