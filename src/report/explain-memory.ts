/**
 * Lines about the memory of zones and about keys too long for them, and whether a limit is meant.
 *
 * Only limit_req's "could not allocate node", the allocator's line about a limit_conn zone, and,
 * in versions before 1.5.13, its line about a limit_req zone say that a limit's zone is full. The
 * allocator serves upstreams, caches and other modules as well.
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import type {
  KeyTooLong,
  NodeAllocationFailed,
  SlabNoMemory,
} from '../../parsers/error/zone-memory.js';
import { SOURCE, SOURCE_WORDS } from '../attribution/source.js';
import { quote } from '../errors.js';
import { readable, readableOrNull } from './explain-request.js';
import {
  explainConnUse,
  explainConnZone,
  explainReqUse,
  explainReqZone,
  usesOfConnZone,
  usesOfReqZone,
} from './explain-rules.js';
import {
  type ExplainedConfiguration,
  type Explanation,
  type Finding,
  type LimitModule,
  blank,
  finding,
} from './explanation.js';

/** `could not allocate node in limit_req zone "NAME"`. */
export function explainNodeFailure(
  line: NodeAllocationFailed,
  conf: NginxConf | undefined,
): Explanation {
  const zone =
    line.zone === null ? 'a limit_req zone' : `limit_req zone ${quote(readable(line.zone))}`;
  const summary =
    `The memory of ${zone} is exhausted: no node could be allocated for a key. ` +
    'limit_req rejected the request, or under dry run would have.';
  return {
    ...blank(line.kind, summary),
    zone: readableOrNull(line.zone),
    source: SOURCE_WORDS[SOURCE.limitReqZoneExhausted] ?? null,
    exhausted: { module: 'limit_req', zone: readableOrNull(line.zone) },
    arithmetic: [
      'The request got limit_req_status and there is no "limiting requests" line for it. This line names no client: only its second ties it to a request.',
      'Keys of one slot size never fail: then the oldest key is forgotten, in silence. A failure means that keys of different lengths share the zone.',
      'Each failed attempt still forgets the oldest key, its debt included.',
    ],
    ...configurationOf(conf, 'limit_req', line.zone),
  };
}

/** `ngx_slab_alloc() failed: no memory`, of whichever pool. */
export function explainSlab(line: SlabNoMemory, conf: NginxConf | undefined): Explanation {
  const pool = {
    what: readableOrNull(line.pool.what),
    zone: readableOrNull(line.pool.zone),
  };
  const module = limitOfPool(line.pool, conf);
  const name = pool.zone === null ? '' : ` ${quote(pool.zone)}`;
  if (module === null) return explainOtherPool({ ...blank(line.kind, ''), pool }, name, conf);
  const code =
    module === 'limit_req' ? SOURCE.limitReqZoneExhausted : SOURCE.limitConnZoneExhausted;
  return {
    ...blank(
      line.kind,
      `The memory of ${module} zone${name} is exhausted: a key found no room. ` +
        `The request got ${module}_status, or under dry run its normal answer.`,
    ),
    zone: pool.zone,
    pool,
    source: SOURCE_WORDS[code] ?? null,
    exhausted: { module, zone: pool.zone },
    arithmetic:
      module === 'limit_conn'
        ? [
            'limit_conn forgets no key to make room: while the zone is full every new key is rejected.',
            'There is no "limiting connections" line for it.',
          ]
        : ['nginx 1.5.13 and later say "could not allocate node" for limit_req zones.'],
    ...configurationOf(conf, module, line.pool.zone),
  };
}

function explainOtherPool(
  known: Explanation,
  name: string,
  conf: NginxConf | undefined,
): Explanation {
  const { pool } = known;
  const what = pool?.what === null || pool === null ? 'an unnamed pool' : `${pool.what}${name}`;
  const summary = `Shared memory is exhausted in ${what}. This is not the zone of a limit.`;
  if (pool?.what !== 'shared zone' || conf !== undefined) return { ...known, summary };
  const message = 'With --conf it can be told whether a limit uses a zone of this name.';
  return {
    ...known,
    summary: `Shared memory is exhausted in ${what}. The line does not say whether a limit uses it.`,
    findings: [finding('pool_unknown', message)],
  };
}

/** Which limit a pool belongs to; null for another module's, and where that is open. */
function limitOfPool(pool: SlabNoMemory['pool'], conf: NginxConf | undefined): LimitModule | null {
  if (pool.what === null || pool.zone === null) return null;
  if (/^limit_conn[_ ]zone$/.test(pool.what)) return 'limit_conn';
  if (/^limit_req[_ ]zone$/.test(pool.what)) return 'limit_req';
  if (pool.what !== 'shared zone' || conf === undefined) return null;
  if (conf.reqZones.has(pool.zone)) return 'limit_req';
  return conf.connZones.has(pool.zone) ? 'limit_conn' : null;
}

/** `the value of the "KEY" key is more than N bytes`. */
export function explainKeyTooLong(line: KeyTooLong, conf: NginxConf | undefined): Explanation {
  const key = quote(readable(line.keyExpression));
  const zones = zonesWithKey(conf, line);
  const zone = zones.length === 1 ? zones[0]! : null;
  const found = configurationOf(conf, line.module, zone);
  return {
    ...blank(
      line.kind,
      `The value of the key ${key} has more than ${line.limitBytes} bytes, so ${line.module} did not limit the request by it.`,
    ),
    zone: readableOrNull(zone),
    arithmetic: [
      'nginx skips the zone, as for an empty key. If no other zone decides, $' +
        `${line.module}_status stays empty.`,
    ],
    ...found,
    findings: [
      finding(
        'fields_behind_key_not_read',
        'Client and request stand behind the key, which the client wrote: they are not believed here.',
      ),
      ...found.findings,
    ],
  };
}

function zonesWithKey(conf: NginxConf | undefined, line: KeyTooLong): string[] {
  const zones = line.module === 'limit_req' ? conf?.reqZones : conf?.connZones;
  return [...(zones?.values() ?? [])]
    .filter((zone) => zone.keyExpression === line.keyExpression)
    .map((zone) => zone.name);
}

function configurationOf(
  conf: NginxConf | undefined,
  module: LimitModule,
  name: string | null,
): { configuration: ExplainedConfiguration | null; findings: Finding[] } {
  if (conf === undefined || name === null) return { configuration: null, findings: [] };
  const path = readable(conf.path);
  const reqZone = module === 'limit_req' ? conf.reqZones.get(name) : undefined;
  const connZone = module === 'limit_conn' ? conf.connZones.get(name) : undefined;
  if (reqZone === undefined && connZone === undefined) {
    const message = `The configuration has no ${module}_zone ${quote(readable(name))}.`;
    return {
      configuration: { path, zones: [], rules: [], burst: null },
      findings: [finding('zone_unknown', message, path)],
    };
  }
  const zones = [
    ...(reqZone === undefined ? [] : [explainReqZone(reqZone)]),
    ...(connZone === undefined ? [] : [explainConnZone(connZone)]),
  ];
  const rules =
    module === 'limit_req'
      ? usesOfReqZone(conf, name, undefined).map((use) => explainReqUse(use, null))
      : usesOfConnZone(conf, name, undefined).map(explainConnUse);
  // No line of memory names its request, so one rule is not said to be the one.
  const open = rules.map((rule) => ({ ...rule, isOfThisRequest: null }));
  return { configuration: { path, zones, rules: open, burst: null }, findings: [] };
}
