/**
 * limit_req_zone, limit_conn_zone, limit_req and limit_conn.
 *
 * After ngx_http_limit_req_zone(), ngx_http_limit_req() and their limit_conn counterparts, with
 * their checks in their order. Units: bytes, milliReq, thousandths of a request per second.
 */
import { addNote, refuse, type Draft, type Level } from './level.js';
import type { Directive } from './lexer.js';
import { parseInteger, parseSizeBytes, timesThousand } from './numbers.js';
import { checkVariables } from './variables.js';

/** Eight pages: the allocator's own bookkeeping leaves nothing useful of less. */
const SMALLEST_ZONE_BYTES = 8n * 4096n;

const MAX_CONNECTIONS = 65535n;

interface ZoneName {
  readonly name: string;
  readonly sizeBytes: bigint;
}

/** `limit_req_zone KEY zone=NAME:SIZE rate=RATE`. */
export function readLimitReqZone(draft: Draft, _level: Level, directive: Directive): void {
  const keyExpression = directive.words[1]!;
  checkVariables(directive, keyExpression);
  let zone: ZoneName = { name: '', sizeBytes: 0n };
  let rateMilliRps = 1000;
  for (const word of directive.words.slice(2)) {
    if (word.startsWith('zone=')) zone = readZoneName(directive, word);
    else if (word.startsWith('rate=')) rateMilliRps = readRate(draft, directive, word);
    else refuse(directive, `invalid parameter "${word}"`);
  }
  requireName(directive, zone);
  draft.zones.add(directive, 'limit_req', zone.name, zone.sizeBytes);
  const known = draft.zones.reqZones.get(zone.name);
  if (known !== undefined) refuseSecondKey(directive, zone.name, known.keyExpression);
  draft.zones.reqZones.set(zone.name, {
    name: zone.name,
    keyExpression,
    sizeBytes: Number(zone.sizeBytes),
    rateMilliRps,
    where: directive.where,
  });
}

/** `limit_conn_zone KEY zone=NAME:SIZE`. */
export function readLimitConnZone(draft: Draft, _level: Level, directive: Directive): void {
  const keyExpression = directive.words[1]!;
  checkVariables(directive, keyExpression);
  let zone: ZoneName = { name: '', sizeBytes: 0n };
  for (const word of directive.words.slice(2)) {
    if (!word.startsWith('zone=')) refuse(directive, `invalid parameter "${word}"`);
    zone = readZoneName(directive, word);
  }
  requireName(directive, zone);
  draft.zones.add(directive, 'limit_conn', zone.name, zone.sizeBytes);
  const known = draft.zones.connZones.get(zone.name);
  if (known !== undefined) refuseSecondKey(directive, zone.name, known.keyExpression);
  draft.zones.connZones.set(zone.name, {
    name: zone.name,
    keyExpression,
    sizeBytes: Number(zone.sizeBytes),
    where: directive.where,
  });
}

/** `limit_req zone=NAME [burst=N] [nodelay | delay=N]`. */
export function readLimitReq(draft: Draft, level: Level, directive: Directive): void {
  let zone: string | undefined;
  let burstMilliReq = 0;
  let delayMilliReq = 0;
  for (const word of directive.words.slice(1)) {
    if (word.startsWith('zone=')) {
      zone = word.slice(5);
      draft.zones.add(directive, 'limit_req', zone, 0n);
    } else if (word.startsWith('burst=')) {
      burstMilliReq = readThreshold(draft, directive, word, 'burst');
    } else if (word.startsWith('delay=')) {
      delayMilliReq = readThreshold(draft, directive, word, 'delay');
    } else if (word === 'nodelay') {
      // Of nodelay and delay= the later one counts: nginx keeps both in one number.
      delayMilliReq = Number.POSITIVE_INFINITY;
    } else refuse(directive, `invalid parameter "${word}"`);
  }
  if (zone === undefined) refuse(directive, '"limit_req" must have "zone" parameter');
  level.limits ??= [];
  if (level.limits.some((limit) => limit.zone === zone)) {
    refuse(directive, '"limit_req" directive is duplicate');
  }
  level.limits.push({ zone, burstMilliReq, delayMilliReq, where: directive.where });
}

/** `limit_conn NAME N`. */
export function readLimitConn(draft: Draft, level: Level, directive: Directive): void {
  const [, zone = '', count = ''] = directive.words;
  draft.zones.add(directive, 'limit_conn', zone, 0n);
  level.connLimits ??= [];
  if (level.connLimits.some((limit) => limit.zone === zone)) {
    refuse(directive, '"limit_conn" directive is duplicate');
  }
  const connections = parseInteger(count);
  if (connections === undefined || connections === 0n) {
    refuse(directive, `invalid number of connections "${count}"`);
  }
  if (connections > MAX_CONNECTIONS) refuse(directive, 'connection limit must be less 65536');
  level.connLimits.push({ zone, connections: Number(connections), where: directive.where });
}

function readZoneName(directive: Directive, word: string): ZoneName {
  const colon = word.indexOf(':');
  const sizeBytes = colon === -1 ? undefined : parseSizeBytes(word.slice(colon + 1));
  if (sizeBytes === undefined) refuse(directive, `invalid zone size "${word}"`);
  if (sizeBytes < SMALLEST_ZONE_BYTES) refuse(directive, `zone "${word}" is too small`);
  return { name: word.slice('zone='.length, colon), sizeBytes };
}

function requireName(directive: Directive, zone: ZoneName): void {
  if (zone.name === '') {
    refuse(directive, `"${directive.words[0]}" must have "zone" parameter`);
  }
}

function refuseSecondKey(directive: Directive, zone: string, key: string): never {
  return refuse(directive, `${directive.words[0]} "${zone}" is already bound to key "${key}"`);
}

/** Without a unit a rate is per second; per minute is divided by 60, and truncated. */
function readRate(draft: Draft, directive: Directive, word: string): number {
  const unit = word.slice(-3);
  const hasUnit = unit === 'r/s' || unit === 'r/m';
  const rate = parseInteger(word.slice('rate='.length, hasUnit ? -3 : undefined));
  if (rate === undefined || rate === 0n) refuse(directive, `invalid rate "${word}"`);
  noteOverflow(draft, directive, word, rate);
  return Math.trunc(timesThousand(rate) / (unit === 'r/m' ? 60 : 1));
}

function readThreshold(
  draft: Draft,
  directive: Directive,
  word: string,
  name: 'burst' | 'delay',
): number {
  const value = parseInteger(word.slice(name.length + 1));
  if (value === undefined || value === 0n) refuse(directive, `invalid ${name} value "${word}"`);
  noteOverflow(draft, directive, word, value);
  return timesThousand(value);
}

function noteOverflow(draft: Draft, directive: Directive, word: string, value: bigint): void {
  if (value <= 9_223_372_036_854_775n) return;
  const message = `"${word}" overflows when nginx multiplies it by 1000`;
  addNote(draft, 'value-overflows', message, directive.where);
}
