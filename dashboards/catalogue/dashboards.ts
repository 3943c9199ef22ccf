/**
 * The dashboards over the store, in the order of their menu. Whoever draws them begins here.
 */
import { DRY_RUN_DASHBOARD } from './dry-run.js';
import { KEYS } from './keys.js';
import { OVERVIEW } from './overview.js';
import type { Dashboard } from './panel.js';
import { PIPELINE_HEALTH } from './pipeline-health.js';
import { ZONES } from './zones.js';

export const DASHBOARDS: readonly Dashboard[] = [
  OVERVIEW,
  ZONES,
  KEYS,
  DRY_RUN_DASHBOARD,
  PIPELINE_HEALTH,
];
