/**
 * What the analysis of a dry run is made of, asked of a store.
 */
import type { Filter } from '../store/filter.js';
import { agreementByZone, limits, topKeys, type KeyTotal } from '../store/queries.js';
import {
  dryRunKeys,
  dryRunKeysByHour,
  outcomesByStep,
  ruleSpans,
} from '../store/queries-analysis.js';
import type { Store } from '../store/store.js';
import type { DryRunInputs } from './dry-run.js';

const HOUR_SECONDS = 3600;

/** @param worst keys per zone */
export async function readDryRunInputs(
  store: Store,
  filter: Filter,
  worst: number,
): Promise<DryRunInputs> {
  const keys = await dryRunKeys(store, filter);
  const worstKeys: KeyTotal[] = [];
  for (const { instance, zone, keysRejected, keysDelayed } of keys) {
    if (keysRejected + keysDelayed === 0) continue;
    worstKeys.push(...(await topKeys(store, zone, worst, { ...filter, instance })));
  }
  return {
    outcomes: await outcomesByStep(store, HOUR_SECONDS, filter),
    spans: await ruleSpans(store, filter),
    keys,
    keysByHour: await dryRunKeysByHour(store, filter),
    worstKeys: worstKeys.filter(
      (row) => row.rejectedDryRun + row.delayedDryRun + row.exhausted > 0,
    ),
    limits: await limits(store, filter),
    notLogged: (await agreementByZone(store, filter)).filter((row) => row.class === 'not_logged'),
  };
}
