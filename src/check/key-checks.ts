/**
 * Checks of what zones are keyed by.
 *
 * Not here: what a key's variables are like (key-traits.ts, variable-traits.ts).
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import {
  limitReqNodeBytes,
  MAX_CONN_KEY_BYTES,
  MAX_REQ_KEY_BYTES,
  slotOf,
} from '../limit-req/layout.js';
import {
  beside,
  inHttp,
  insteadOf,
  limitLine,
  connLimitLine,
  word,
  zoneLine,
} from './conf-lines.js';
import { type Finding, finding, type FindingParts } from './finding.js';
import { SHORT_KEY_BYTES, type Traits } from './key-traits.js';
import type { Survey, ZoneUse } from './survey.js';
import { capacityKeys } from './zone-size.js';

/** With limit_conn's smaller nodes, keys up to this length take the smallest slot. */
const SHORT_CONN_KEY_BYTES = 28;

const LENGTHS_SHOWN_BYTES = [100, 500, 2000];

export function checkKeys(survey: Survey): readonly Finding[] {
  return survey.zones.flatMap((zoneUse) => {
    // A zone without rules has a finding of its own, and no requests.
    if (zoneUse.uses.length === 0) return [];
    const { traits } = zoneUse;
    return [
      ...clientControlled(survey, zoneUse, traits),
      ...canBeEmpty(survey, zoneUse, traits),
      ...long(survey, zoneUse, traits),
      ...mixed(survey, zoneUse, traits),
    ];
  });
}

/** A name for a zone that the configuration does not have yet. */
export function freeZoneName(conf: NginxConf, name: string): string {
  return freeName(name, (wanted) => conf.reqZones.has(wanted) || conf.connZones.has(wanted));
}

export function freeName(name: string, isTaken: (name: string) => boolean): string {
  for (let wanted = name, n = 2; ; wanted = `${name}${n}`, n += 1) {
    if (!isTaken(wanted)) return wanted;
  }
}

function clientControlled(survey: Survey, zoneUse: ZoneUse, traits: Traits): readonly Finding[] {
  const { zone } = zoneUse;
  const free = dollars(traits.free);
  const choice = dollars(traits.choice);
  const isHeld = isBesideAddress(survey, zoneUse);
  const severity = isHeld ? 'info' : 'warning';
  const fix = isHeld ? [] : limitByAddress(survey.conf, zoneUse);
  const found = (parts: Pick<FindingParts, 'message' | 'details' | 'fix'>): readonly Finding[] => [
    finding('key-client-controlled', { severity, where: zone.where, ...parts }),
  ];
  if (traits.emptyByChoice.length > 0) {
    const message =
      `${choice || free}, which the client writes, can choose the empty key of zone ` +
      `"${zone.name}" (${someOf(traits.emptyByChoice, ', ')}): such a request is not limited`;
    return found({ message, fix });
  }
  if (free !== '') {
    const message = `zone "${zone.name}" is keyed by ${free}, which the client writes`;
    if (/forwarded_for/.test(free)) {
      const details = 'Trust the header only from your own proxies, with set_real_ip_from.';
      return found({ message, details, fix: realIpLines(zoneUse) });
    }
    const details = isHeld
      ? 'Here a limit by address holds such a client.'
      : 'Keep it beside a limit by address, as below.';
    return found({ message, details, fix });
  }
  // A few keys beside a limit by address do no harm.
  if (choice === '' || isHeld) return [];
  const message = `${choice}, which the client writes, chooses between the keys of zone "${zone.name}"`;
  return [finding('key-client-controlled', { severity: 'info', where: zone.where, message, fix })];
}

/** Whether everywhere a limit by address, which no client can leave, holds as well. */
function isBesideAddress({ zones }: Survey, { kind, uses }: ZoneUse): boolean {
  const list = kind === 'limit_req' ? 'limits' : 'connLimits';
  const byAddress = new Set(
    zones
      .filter((other) => other.kind === kind && isAddressAlone(other.traits))
      .map((other) => other.zone.name),
  );
  return uses.every(({ levels }) =>
    levels.every(({ rules }) => rules[list].some((limit) => byAddress.has(limit.zone))),
  );
}

function isAddressAlone({ isByAddress, free, choice }: Traits): boolean {
  return isByAddress && free.size === 0 && choice.size === 0;
}

function realIpLines({ zone }: ZoneUse): readonly string[] {
  return [
    inHttp('set_real_ip_from 192.0.2.10;', "; your proxy's address"),
    inHttp('real_ip_header X-Forwarded-For;'),
    insteadOf(zone.where, zoneLine({ ...zone, keyExpression: '$binary_remote_addr' })),
  ];
}

/** A second zone by address, and a second limit beside each of the first one's. */
function limitByAddress(conf: NginxConf, { zone, uses }: ZoneUse): readonly string[] {
  const name = freeZoneName(conf, `${zone.name}_addr`);
  return [
    inHttp(zoneLine({ ...zone, name, keyExpression: '$binary_remote_addr' })),
    ...uses.map(({ limit }) => {
      const line =
        'connections' in limit
          ? connLimitLine({ ...limit, zone: name })
          : limitLine({ ...limit, zone: name });
      return beside(limit.where, line);
    }),
  ];
}

function canBeEmpty(
  survey: Survey,
  { zone, kind, uses }: ZoneUse,
  traits: Traits,
): readonly Finding[] {
  if (traits.empty.length === 0) return [];
  const list = kind === 'limit_req' ? 'limits' : 'connLimits';
  const isOnly = uses.some(({ levels }) => levels.some(({ rules }) => rules[list].length === 1));
  const variable = freeVariable(survey.conf, `${zone.name}_key`);
  const key = zone.keyExpression.replace(/[\\"]/g, '\\$&');
  const fallback = `map "${key}" $${variable} { default "${key}"; "" $binary_remote_addr; }`;
  const consequence = isOnly ? ', and no other limit holds it' : '';
  return [
    finding('key-can-be-empty', {
      severity: isOnly ? 'warning' : 'info',
      where: zone.where,
      message: `the key ${zone.keyExpression} of zone "${zone.name}" can be empty${consequence}`,
      details: `When: ${someOf(traits.empty, '; ')}. If that is not meant, fall back to the address.`,
      fix: [
        inHttp(fallback),
        insteadOf(zone.where, zoneLine({ ...zone, keyExpression: `$${variable}` })),
      ],
    }),
  ];
}

function long({ conf }: Survey, { zone, kind }: ZoneUse, traits: Traits): readonly Finding[] {
  if (Number.isFinite(traits.longestBytes)) return [];
  const isConn = kind === 'limit_conn';
  const lengths = LENGTHS_SHOWN_BYTES.filter((length) => !isConn || length <= MAX_CONN_KEY_BYTES);
  const shortBytes = isConn ? SHORT_CONN_KEY_BYTES : SHORT_KEY_BYTES;
  const short = capacityKeys(kind, zone.sizeBytes, shortBytes, zone.name.length);
  const shown = lengths.map((length) => {
    return `${capacityKeys(kind, zone.sizeBytes, length, zone.name.length)} of ${length}`;
  });
  const most = isConn ? MAX_CONN_KEY_BYTES : MAX_REQ_KEY_BYTES;
  const message =
    `zone "${zone.name}" holds ${short} keys of ${shortBytes} bytes, but ` +
    `${shown.join(', ')} bytes, and ${zone.keyExpression} can be as long as a request's header`;
  return [
    finding('key-long', {
      severity: isConn ? 'warning' : 'info',
      where: zone.where,
      message,
      details:
        `A key of more than ${most} bytes is not limited at all. ` +
        `The lines below keep the first ${shortBytes} bytes of each key.`,
      fix: shortened(conf, zone, shortBytes),
    }),
  ];
}

function mixed(survey: Survey, { zone, kind }: ZoneUse, traits: Traits): readonly Finding[] {
  // A full limit_conn zone refuses every new key, whatever its length.
  if (kind === 'limit_conn') return [];
  const { shortestKeyBytes, longestKeyBytes } = survey.keysSeen.get(zone.name) ?? {};
  if (shortestKeyBytes !== undefined && longestKeyBytes !== undefined) {
    const [from, to] = [shortestKeyBytes, longestKeyBytes].map((n) => slotOf(limitReqNodeBytes(n)));
    if (from === to) return [];
    const message = `keys of ${shortestKeyBytes} to ${longestKeyBytes} bytes were seen in zone "${zone.name}", which take slots of several sizes`;
    return [mixedFinding(survey.conf, zone, 'warning', message)];
  }
  if (!traits.isMixed) return [];
  const message = `keys of zone "${zone.name}" are short and long: ${zone.keyExpression} varies in length by its nature`;
  return [mixedFinding(survey.conf, zone, 'info', message)];
}

function mixedFinding(
  conf: NginxConf,
  zone: ZoneUse['zone'],
  severity: 'warning' | 'info',
  message: string,
): Finding {
  return finding('mixed-key-lengths', {
    severity,
    where: zone.where,
    message,
    details: `The lines below keep the first ${SHORT_KEY_BYTES} bytes of each key.`,
    fix: shortened(conf, zone, SHORT_KEY_BYTES),
  });
}

/** A key that is cut so that its longest value still fits into the zone's smallest slot. */
function shortened(conf: NginxConf, zone: ZoneUse['zone'], keyBytes: number): readonly string[] {
  const variable = freeVariable(conf, `${zone.name}_short`);
  const map = `map ${word(zone.keyExpression)} $${variable} { "~^(?s)(.{1,${keyBytes}})" $1; }`;
  return [inHttp(map), insteadOf(zone.where, zoneLine({ ...zone, keyExpression: `$${variable}` }))];
}

function freeVariable(conf: NginxConf, name: string): string {
  // `$1…` would be a capture.
  const safe = name
    .replace(/\W/g, '_')
    .replace(/^(?=\d)/, 'zone_')
    .toLowerCase();
  return freeName(safe, (wanted) => conf.maps.has(wanted) || conf.geos.has(wanted));
}

/** The first three, and how many more there are. */
function someOf(texts: readonly string[], separator: string): string {
  const shown = texts.slice(0, 3).join(separator);
  return texts.length > 3 ? `${shown}${separator}and ${texts.length - 3} more` : shown;
}

function dollars(names: ReadonlySet<string>): string {
  return [...names].map((name) => `$${name}`).join(', ');
}
