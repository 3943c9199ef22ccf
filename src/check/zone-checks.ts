/**
 * Checks of zones: their size, their rate, and whether anything uses them.
 */
import type { LimitReqZone } from '../../parsers/conf/model.js';
import {
  count,
  inHttp,
  insteadOf,
  limitLine,
  perMinute,
  placeText,
  rateText,
  secondsText,
  zoneLine,
} from './conf-lines.js';
import { type Finding, finding } from './finding.js';
import { freeZoneName } from './key-checks.js';
import { SHORT_KEY_BYTES } from './key-traits.js';
import { groupBy, type KeysSeen, type Survey, type ZoneUse } from './survey.js';
import {
  capacityKeys,
  roundedSizeBytes,
  sizeForKeys,
  sizeText,
  type ZoneSize,
} from './zone-size.js';

/**
 * Without a look at the traffic: a zone for clients that holds fewer keys than this is suspect.
 * 256k hold 1983 short keys; the examples of nginx's documentation have 1m and more.
 */
const FEW_KEYS = 2000;
/** What a zone for clients is then proposed to hold. */
const USUAL_KEYS = 10_000;
/** Room that a proposed size leaves, and above which a zone counts as nearly full. */
const ROOM = 1.25;

const ADDRESS_KEY_BYTES = 16;

export function checkZones(survey: Survey): readonly Finding[] {
  return [
    ...survey.zones.flatMap((zoneUse) => unused(survey, zoneUse)),
    ...survey.zones.flatMap((zoneUse) => tooSmall(survey, zoneUse)),
    ...[...survey.conf.reqZones.values()].flatMap(rateTruncated),
    ...sharedByRules(survey),
  ];
}

function unused({ conf }: Survey, { zone, kind, uses }: ZoneUse): readonly Finding[] {
  if (uses.length > 0) return [];
  const unread = conf.notes.find(({ code }) => code === 'limit-in-unknown-block');
  const message = `no ${kind} in force uses zone "${zone.name}"`;
  if (unread === undefined) {
    return [finding('zone-unused', { severity: 'warning', where: zone.where, message })];
  }
  const details = `Or the limit at ${placeText(unread.where)}, which is not read, uses it.`;
  return [finding('zone-unused', { severity: 'info', where: zone.where, message, details })];
}

function tooSmall(survey: Survey, zoneUse: ZoneUse): readonly Finding[] {
  const { zone, kind, uses } = zoneUse;
  if (uses.length === 0) return [];
  const seen = survey.keysSeen.get(zone.name);
  if (seen !== undefined) return tooSmallFor(zoneUse, seen);
  const { traits } = zoneUse;
  if (!traits.isByAddress && traits.free.size === 0) return [];
  const isByAddress = traits.free.size === 0;
  const keyBytes = isByAddress ? ADDRESS_KEY_BYTES : SHORT_KEY_BYTES;
  const capacity = capacityKeys(kind, zone.sizeBytes, keyBytes, zone.name.length);
  if (capacity >= FEW_KEYS) return [];
  const message = `zone "${zone.name}" of ${sizeText(zone.sizeBytes)} holds ${count(capacity, 'key')} of up to ${keyBytes} bytes`;
  const wanted = sizeForKeys(USUAL_KEYS, keyBytes, zone.name.length, kind);
  return [
    finding('zone-too-small', {
      severity: 'info',
      where: zone.where,
      message,
      details: `How many it needs, \`limitlens zones\` tells from the logs; the line below is for ${USUAL_KEYS}.`,
      fix: [resized(zone, wanted)],
    }),
  ];
}

function tooSmallFor({ zone, kind }: ZoneUse, seen: KeysSeen): readonly Finding[] {
  const keyBytes = seen.longestKeyBytes ?? ADDRESS_KEY_BYTES;
  const capacity = capacityKeys(kind, zone.sizeBytes, keyBytes, zone.name.length);
  if (capacity >= seen.keys * ROOM) return [];
  const wanted = sizeForKeys(Math.ceil(seen.keys * ROOM), keyBytes, zone.name.length, kind);
  const isFull = capacity < seen.keys;
  const message = `zone "${zone.name}" of ${sizeText(zone.sizeBytes)} holds ${count(capacity, 'key')} of up to ${keyBytes} bytes; ${seen.keys} were seen`;
  return [
    finding('zone-too-small', {
      severity: isFull ? 'error' : 'warning',
      where: zone.where,
      message,
      fix: [resized(zone, wanted)],
    }),
  ];
}

function resized(zone: ZoneUse['zone'], wanted: ZoneSize): string {
  const sizeBytes = roundedSizeBytes(wanted.sizeBytes);
  return insteadOf(zone.where, zoneLine({ ...zone, sizeBytes }));
}

function rateTruncated(zone: LimitReqZone): readonly Finding[] {
  const { rateMilliRps, where } = zone;
  const written = perMinute(rateMilliRps);
  if (rateMilliRps % 1000 === 0 || (written * 1000) % 60 === 0) return [];
  const exact = Math.max(3, Math.round(written / 3) * 3);
  const message =
    `rate=${rateText(rateMilliRps)} of zone "${zone.name}" is ${rateMilliRps} thousandths of a ` +
    `request per second: ${Number(((rateMilliRps * 60) / 1000).toFixed(2))} a minute, one in ` +
    secondsText(Math.round(1_000_000 / rateMilliRps));
  // For 1r/m the next exact rate is three times as much: no line that anybody wants.
  const fix =
    written < 3 ? [] : [insteadOf(where, zoneLine({ ...zone, rateMilliRps: exactRate(exact) }))];
  return [finding('rate-truncated', { severity: 'info', where, message, fix })];
}

function exactRate(perMinuteExact: number): number {
  return (perMinuteExact * 1000) / 60;
}

function sharedByRules({ conf, reqUses }: Survey): readonly Finding[] {
  return [...conf.reqZones.values()].flatMap((zone) => {
    const limits = reqUses.map(({ limit }) => limit).filter((limit) => limit.zone === zone.name);
    if (new Set(limits.map((limit) => limit.burstMilliReq)).size < 2) return [];
    const strictest = limits.reduce((a, b) => (b.burstMilliReq < a.burstMilliReq ? b : a));
    const name = freeZoneName(conf, `${zone.name}_own`);
    const lines = groupBy(limits, (limit) => `burst=${limit.burstMilliReq / 1000}`).map((same) => {
      const [first] = same;
      const more = same.length > 1 ? ` and ${same.length - 1} more` : '';
      return `burst=${first!.burstMilliReq / 1000} at ${placeText(first!.where)}${more}`;
    });
    return [
      finding('zone-shared-by-rules', {
        severity: 'warning',
        where: strictest.where,
        message: `zone "${zone.name}" is under rules with different bursts: ${lines.join(', ')}`,
        fix: [
          inHttp(zoneLine({ ...zone, name })),
          insteadOf(strictest.where, limitLine({ ...strictest, zone: name })),
        ],
      }),
    ];
  });
}
