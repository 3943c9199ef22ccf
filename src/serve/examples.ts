/**
 * Limited requests that are kept as examples, with what the store knows about their limits: enough
 * to explain one.
 */
import { chosen, equals, OF_INSTANCES } from '../../dashboards/catalogue/conditions.js';
import type { ExampleInfo } from '../../dashboards/page/wire.js';
import type { PanelRows } from './panel-rows.js';

/** The newest examples; of one key where one is chosen. With variables, as panels have them. */
export function examplesSql(isOfOneKey: boolean): string {
  return `SELECT time, instance, source, status, server, location, request_method AS method, path,
  zone, key, excess_milli / 1000 AS excess
FROM examples
WHERE ${OF_INSTANCES}
  AND ${chosen('server', 'server')}
  AND $__timeFilter(time)
  AND ${chosen('location', 'location')}
  AND ${chosen('zone', 'zone')}
  AND ${isOfOneKey ? equals('key', 'key') : '1'}
ORDER BY time DESC, server, location, path
LIMIT 200`;
}

/**
 * What tells one example from others, as plain text. Key and path choose among those of one
 * millisecond: text that was no UTF-8 does not come back as it was.
 */
export interface ExampleQuestion {
  /** Any when empty. */
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  /** Epoch milliseconds. */
  readonly time: string;
  readonly zone: string;
  readonly key: string;
  readonly path: string;
}

/** One `limit_req` line of a configuration, as `limits.rules` has it. */
export interface StoredRule {
  readonly server: string;
  readonly location: string;
  readonly burst: number;
  readonly delay: number | 'nodelay';
  readonly status: number;
  readonly dryRun: boolean;
  /** `file:line` */
  readonly where: string;
}

/** The zone as it was at the time of an example. */
export interface StoredZone {
  readonly keyExpression: string;
  readonly sizeBytes: number;
  readonly rateMilliRps: number;
  readonly rules: readonly StoredRule[];
}

export interface FoundExample {
  readonly example: ExampleInfo;
  /** undefined for limit_conn, and where no configuration of that time is known. */
  readonly zone: StoredZone | undefined;
}

/** @throws as PanelRows.objects() */
export async function readExample(
  rows: PanelRows,
  question: ExampleQuestion,
  gone: AbortSignal,
): Promise<FoundExample | undefined> {
  const { time, zone: name } = question;
  const [example] = await rows.objects<ExampleInfo>(
    {
      sql: `SELECT instance, server, location, status, source,
  toUnixTimestamp64Milli(time) AS timeMs, request_method AS method, path, zone, key,
  excess_milli AS excessMilli
FROM examples
WHERE ({instance:String} = '' OR instance = {instance:String}) AND server = {server:String}
  AND time = fromUnixTimestamp64Milli(toInt64({time:String}), 'UTC')
  AND location = {location:String} AND zone = {zone:String}
ORDER BY (key = {key:String}) + (path = {path:String}) DESC
LIMIT 1`,
      params: { ...question },
    },
    gone,
  );
  if (example === undefined) return undefined;
  const [limits] = await rows.objects<Omit<StoredZone, 'rules'> & { rules: string }>(
    {
      sql: `SELECT key_expression AS keyExpression, size_bytes AS sizeBytes,
  rate_milli_rps AS rateMilliRps, rules
FROM limits FINAL
WHERE instance = {instance:String} AND zone = {zone:String}
ORDER BY since > fromUnixTimestamp64Milli(toInt64({time:String}), 'UTC'), since DESC
LIMIT 1`,
      params: { instance: example.instance, zone: name, time },
    },
    gone,
  );
  const zone =
    limits === undefined
      ? undefined
      : { ...limits, rules: JSON.parse(limits.rules) as readonly StoredRule[] };
  return { example, zone };
}
