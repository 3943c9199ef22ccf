/**
 * Tells configurations, and forms of the state, apart by all that waiting requests refer to.
 */
import { createHash } from 'node:crypto';
import { STATE_FORM } from '../replay/engine-state.js';
import type { ReplaySession } from '../replay/session.js';

/** Of the first rules and zones of a session: those that come later change nothing of these. */
export function rulesOf(session: ReplaySession, ruleCount: number, zoneCount: number): string {
  const { rules, ruleSets, zones, zoneKeys } = session.generations;
  const text = JSON.stringify([
    rules
      .slice(0, ruleCount)
      .map((rule, i) => [
        ruleSets[i]!.serverName,
        ruleSets[i]!.location,
        rule.isDryRun,
        rule.connZones,
        rule.limits.map((limit) => [
          ...[limit.zoneIndex, limit.rateMilliRps, limit.burstMilliReq, limit.delayMilliReq],
        ]),
      ]),
    zones.slice(0, zoneCount).map((zone, i) => [zone.name, zone.sizeBytes, zoneKeys[i]]),
    [ruleCount, zoneCount],
    STATE_FORM,
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
