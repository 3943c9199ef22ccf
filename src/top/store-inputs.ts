/**
 * What `limitlens top` asks of a store.
 */
import {
  BUCKET_SECONDS,
  inBuckets,
  MINUTE_SECONDS,
  ofInstance,
  type Filter,
} from '../store/filter.js';
import { limits, sources429503, zoneStateLatest, zoneTotals } from '../store/queries.js';
import type { Store } from '../store/store.js';
import type {
  KeyOrder,
  OutcomeTotal,
  SourceTotal,
  StateTotal,
  TopInputs,
  TopKey,
  ZoneRate,
} from './snapshot.js';

const ORDERS: Readonly<Record<KeyOrder, string>> = {
  rejected: 'refused + dryRun DESC, delayed DESC, excessMaxMilli DESC',
  excess: 'excessMaxMilli DESC, refused + dryRun DESC',
};

export class StoreInputs implements TopInputs {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async newestBucketMs(filter: Filter): Promise<number | null> {
    const { sql, params } = ofInstance(filter);
    const [row] = await this.#store.query<{ buckets: number; newest: number }>(
      `SELECT count() AS buckets, toUnixTimestamp(max(bucket)) AS newest
       FROM responses WHERE ${sql}`,
      params,
    );
    return row === undefined || row.buckets === 0 ? null : row.newest * 1000;
  }

  async requests(filter: Filter): Promise<number> {
    const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
    const [row] = await this.#store.query<{ all: number }>(
      `SELECT sum(requests) AS all FROM responses WHERE ${sql}`,
      params,
    );
    return row?.all ?? 0;
  }

  outcomes(filter: Filter): Promise<readonly OutcomeTotal[]> {
    return zoneTotals(this.#store, filter);
  }

  states(filter: Filter): Promise<readonly StateTotal[]> {
    return zoneStateLatest(this.#store, filter);
  }

  rates(filter: Filter): Promise<readonly ZoneRate[]> {
    return limits(this.#store, filter);
  }

  sources(filter: Filter): Promise<readonly SourceTotal[]> {
    return sources429503(this.#store, filter);
  }

  async keys(filter: Filter, order: KeyOrder, count: number): Promise<readonly TopKey[]> {
    const { sql, params } = inBuckets(filter, 'minute', MINUTE_SECONDS);
    const rows = await this.#store.query<
      Omit<TopKey, 'excessMax' | 'rejected'> & { refused: number; excessMaxMilli: number }
    >(
      `SELECT zone, key, sum(key_minutes.passed) AS passed, sum(key_minutes.delayed) AS delayed,
         sum(rejected) + sum(exhausted) AS refused,
         sum(delayed_dry_run) + sum(rejected_dry_run) AS dryRun,
         max(excess_max_milli) AS excessMaxMilli
       FROM key_minutes WHERE ${sql}
       GROUP BY instance, zone, key
       HAVING refused + dryRun + delayed > 0 OR excessMaxMilli > 0
       ORDER BY ${ORDERS[order]}, zone, key LIMIT {count:UInt32}`,
      { ...params, count },
    );
    return rows.map(({ refused, excessMaxMilli, ...row }) => ({
      ...row,
      rejected: refused,
      excessMax: excessMaxMilli / 1000,
    }));
  }
}
