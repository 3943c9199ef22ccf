/**
 * Lines of a configuration, written the way nginx reads them.
 *
 * The inverse of parsers/conf: bytes, thousandths and thresholds go back into `10m`, `7r/m` and
 * `burst=20`. A line that is a proposal ends in a comment that says where it goes.
 */
import type { ConfWhere, ConnLimit, Limit } from '../../parsers/conf/model.js';
import { sizeText } from './zone-size.js';

/** The requests per minute that a rate was written as, when it is no whole number per second. */
export function perMinute(rateMilliRps: number): number {
  // N r/m was cut by less than a thousandth of a request per second, which is 0.06 r/m.
  return Math.ceil((rateMilliRps * 60) / 1000);
}

/** `10r/s` or `7r/m`; exact, since truncation loses less than one request per minute. */
export function rateText(rateMilliRps: number): string {
  return rateMilliRps % 1000 === 0 ? `${rateMilliRps / 1000}r/s` : `${perMinute(rateMilliRps)}r/m`;
}

/** A word as it may stand in a configuration: quoted where it has to be. */
export function word(text: string): string {
  if (/^[\w$./:@+~^*,=?!|-]+$/.test(text)) return text;
  return `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r')}"`;
}

export interface ZoneLine {
  readonly name: string;
  readonly keyExpression: string;
  readonly sizeBytes: number;
  /** Absent for limit_conn_zone. */
  readonly rateMilliRps?: number;
}

/** `limit_req_zone KEY zone=NAME:SIZE rate=RATE;`, or limit_conn_zone without a rate. */
export function zoneLine(zone: ZoneLine): string {
  const nameAndSize = word(`zone=${zone.name}:${sizeText(zone.sizeBytes)}`);
  const key = word(zone.keyExpression);
  return zone.rateMilliRps === undefined
    ? `limit_conn_zone ${key} ${nameAndSize};`
    : `limit_req_zone ${key} ${nameAndSize} rate=${rateText(zone.rateMilliRps)};`;
}

/** `limit_req zone=NAME burst=N delay=N;` */
export function limitLine(limit: Pick<Limit, 'zone' | 'burstMilliReq' | 'delayMilliReq'>): string {
  const { zone, burstMilliReq, delayMilliReq } = limit;
  const burst = burstMilliReq > 0 ? ` burst=${burstMilliReq / 1000}` : '';
  return `limit_req ${word(`zone=${zone}`)}${burst}${delayText(delayMilliReq)};`;
}

function delayText(delayMilliReq: number): string {
  if (delayMilliReq === 0) return '';
  return Number.isFinite(delayMilliReq) ? ` delay=${delayMilliReq / 1000}` : ' nodelay';
}

export function connLimitLine({ zone, connections }: ConnLimit): string {
  return `limit_conn ${word(zone)} ${connections};`;
}

/** `FILE:LINE`; a comment ends with its line, so a path must not bring another. */
export function placeText(where: ConfWhere): string {
  return `${where.path.replace(/[\x00-\x1f\x7f]/g, '?')}:${where.line}`;
}

/** @param remark begins with its own punctuation */
export function inHttp(line: string, remark = ''): string {
  return `${line}  # in http${remark}`;
}

export function inServer(line: string): string {
  return `${line}  # in server`;
}

export function beside(where: ConfWhere, line: string): string {
  return `${line}  # beside ${placeText(where)}`;
}

export function insteadOf(where: ConfWhere, line: string): string {
  return `${line}  # instead of ${placeText(where)}`;
}

/** `1 key`, `8095 keys`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** Milliseconds as seconds, as many digits as they have: `8.62 s`. */
export function secondsText(ms: number): string {
  return `${Number((ms / 1000).toFixed(3))} s`;
}
