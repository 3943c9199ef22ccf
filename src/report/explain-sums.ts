/**
 * The sums behind a line about limit_req, as numbers and as sentences.
 *
 * They follow ngx_http_limit_req_lookup() and ngx_http_limit_req_account(); the delay comes from
 * src/limit-req itself. Units: one request is 1000 milliReq; rates are thousandths of a request
 * per second.
 */
import { ONE_REQUEST_MILLI_REQ, delayMs } from '../limit-req/arithmetic.js';
import type { ImpliedBurst } from './explanation.js';

const RATES = [
  { text: '1r/s', milliRps: 1_000 },
  { text: '10r/s', milliRps: 10_000 },
] as const;
const ONE_PER_MINUTE_MILLI_RPS = 16;

/** `50.416`, as nginx prints it. */
export function thousandths(milliReq: number): string {
  return (milliReq / ONE_REQUEST_MILLI_REQ).toFixed(3);
}

/** A threshold without needless zeros: `5`, `0.5`. */
export function requests(milliReq: number): string {
  return String(milliReq / ONE_REQUEST_MILLI_REQ);
}

/**
 * `10r/s`, or `1r/m`. nginx keeps N/60 r/s truncated to thousandths; rounding up gives N back.
 */
export function rateText(rateMilliRps: number): string {
  if (rateMilliRps % ONE_REQUEST_MILLI_REQ === 0) return `${requests(rateMilliRps)}r/s`;
  return `${Math.ceil((rateMilliRps * 60) / ONE_REQUEST_MILLI_REQ)}r/m`;
}

/**
 * The burst that a reject tells: burst < excess ≤ burst + 1, for what is stored never passes
 * burst, and this request added one.
 */
export function impliedBurst(excessMilliReq: number): ImpliedBurst {
  const burst = burstBelow(excessMilliReq);
  return excessMilliReq % ONE_REQUEST_MILLI_REQ === 0 ? { low: burst, high: burst } : burst;
}

/** The largest whole number below an excess. */
export function burstBelow(excessMilliReq: number): number {
  return Math.ceil(excessMilliReq / ONE_REQUEST_MILLI_REQ) - 1;
}

/** Whole seconds after which a rejected request fits, when no other of its key comes between. */
export function retryAfterSeconds(overMilliReq: number, rateMilliRps: number): number {
  return Math.ceil(overMilliReq / rateMilliRps);
}

/** The same in milliseconds: the first at which what has decayed covers the excess. */
export function fitsAgainMs(overMilliReq: number, rateMilliRps: number): number {
  return Math.ceil((overMilliReq * 1000) / rateMilliRps);
}

/** What the number in the line counts. */
export function excessSentence(excessMilliReq: number): string {
  return (
    `Excess ${thousandths(excessMilliReq)} counts requests above the rate, this one included: ` +
    "what was stored for the key, less rate times the time since the key's last charge, plus 1. " +
    "A key's first request counts 0."
  );
}

/** Why a reject tells the burst. */
export function burstSentence(excessMilliReq: number): string {
  const excess = thousandths(excessMilliReq);
  return (
    'nginx rejects when excess > burst, and stores no more than burst: ' +
    `burst < ${excess} ≤ burst + 1, so burst was ${burstBelow(excessMilliReq)} ` +
    '(if all rules of the zone have one burst).'
  );
}

/** When a rejected request fits again, at a known rate. */
export function retrySentence(
  excessMilliReq: number,
  burstMilliReq: number,
  rateMilliRps: number,
): string {
  const over = excessMilliReq - burstMilliReq;
  const seconds = retryAfterSeconds(over, rateMilliRps);
  return (
    `At ${rateText(rateMilliRps)} one request fits again after ` +
    `(${thousandths(excessMilliReq)} − ${requests(burstMilliReq)})·1000/${requests(rateMilliRps)} ` +
    `= ${fitsAgainMs(over, rateMilliRps)} ms, rounded up, if no other request of the key is charged before. ` +
    `An honest Retry-After: ${seconds} s.`
  );
}

/** The same where the rate is not known, with examples. */
export function retryExamples(overMilliReq: number): string {
  const examples = RATES.map(
    ({ text, milliRps }) => `${fitsAgainMs(overMilliReq, milliRps)} ms at ${text}`,
  ).join(', ');
  const slow = retryAfterSeconds(overMilliReq, ONE_PER_MINUTE_MILLI_RPS);
  return (
    `One request fits again after ${thousandths(overMilliReq)}/rate seconds: ${examples}, ` +
    'if no other request of the key is charged before. ' +
    `An honest Retry-After: 1 s from 1r/s up, ${slow} s at 1r/m. ` +
    'The rate is not in the line; --conf tells it.'
  );
}

export function retryFormula(overMilliReq: number): string {
  return `ceil(${thousandths(overMilliReq)} / rate)`;
}

/** How long a delayed request waits, at a known rate. */
export function delaySentence(
  excessMilliReq: number,
  delayMilliReq: number,
  rateMilliRps: number,
): string {
  const ms = delayMs(excessMilliReq, delayMilliReq, rateMilliRps);
  return (
    `Delay: (excess − delay)·1000/rate = (${thousandths(excessMilliReq)} − ` +
    `${requests(delayMilliReq)})·1000/${requests(rateMilliRps)} = ${ms} ms, cut to whole ones.`
  );
}

/** The same where the rate is not known, with examples. */
export function delayExamples(excessMilliReq: number): string {
  const examples = RATES.map(
    ({ text, milliRps }) => `${delayMs(excessMilliReq, 0, milliRps)} ms at ${text}`,
  ).join(', ');
  return (
    `Delay: (excess − delay)·1000/rate milliseconds. With delay=0, the default: ${examples}. ` +
    'Rate and delay are not in the line; --conf tells them.'
  );
}

export function delayFormula(excessMilliReq: number): string {
  return `(${thousandths(excessMilliReq)} - delay) * 1000 / rate`;
}
