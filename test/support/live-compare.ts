/**
 * A replay of a live capture, held against the truth of its debug log.
 *
 * Units: thousandths of a request as integers; widths in milliseconds of a zone's rate.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replayFiles, type ReplayedRequest, type ReplayedZone } from './agreement.js';
import type { Capture, FormatName, Truth } from './live-scenario.js';

export interface Variant {
  readonly format: FormatName;
  readonly withErrorLog: boolean;
  readonly isAudit?: boolean;
}

export interface LiveAgreement {
  readonly decided: number;
  readonly wrong: number;
  readonly unexplained: number;
  readonly meanPossible: number;
  readonly zoneRows: number;
  readonly outside: number;
  readonly anchored: number;
  /** Anchors whose excess is not nginx's: a line joined to the wrong request. */
  readonly wrongAnchors: number;
  readonly medianWidthMs: number;
  /** What was odd, for people: request line, truth, and what the replay said. */
  readonly oddities: readonly string[];
}

/** Runs `limitlens replay` on one of a capture's logs. */
export function replayCapture(capture: Capture, variant: Variant): ReplayedRequest[] {
  return replayFiles([
    ...capture.confs.flatMap((path) => ['--conf', path]),
    join(capture.dir, `${variant.format}.log`),
    ...(variant.withErrorLog ? ['--error-log', join(capture.dir, 'error.log')] : []),
    ...(variant.isAudit === true ? ['--audit'] : []),
  ]);
}

class Tally {
  decided = 0;
  wrong = 0;
  unexplained = 0;
  possible = 0;
  zoneRows = 0;
  outside = 0;
  anchored = 0;
  wrongAnchors = 0;
  readonly widths: number[] = [];
  readonly oddities: string[] = [];
  readonly #rates: ReadonlyMap<string, number>;

  constructor(rates: ReadonlyMap<string, number>) {
    this.#rates = rates;
  }

  add(request: ReplayedRequest, truth: Truth): void {
    const said = truth.limitReqStatus === '' ? null : truth.limitReqStatus;
    const wasAsked = said !== null || request.verdict !== null;
    if (!wasAsked) return;
    this.decided++;
    const odd: string[] = [];
    if (request.verdict !== said) {
      this.wrong++;
      odd.push(`verdict ${request.verdict}`);
    }
    if (said === null || !request.possible.includes(said)) {
      this.unexplained++;
      odd.push('unexplained');
    }
    this.possible += request.possible.length;
    for (const zone of truth.decided?.zones ?? []) {
      const said = this.#addZone(request.zones[zone.index], zone);
      if (said !== '') odd.push(said);
    }
    if (odd.length > 0) {
      const zones = truth.decided?.zones.map((z) => `${z.index}:${z.rc} ${z.excessMilliReq}`);
      this.oddities.push(
        `${odd.join(', ')}\n    ${truth.line}\n    truth ${said} ${zones?.join(' ')}\n    ${JSON.stringify(request)}`,
      );
    }
  }

  #addZone(found: ReplayedZone | undefined, truth: { rc: string; excessMilliReq: number }): string {
    if (truth.rc === 'ERROR') return '';
    this.zoneRows++;
    if (found?.anchored === true) {
      this.anchored++;
      if (Math.round((found.excess ?? NaN) * 1000) !== truth.excessMilliReq) this.wrongAnchors++;
    }
    if (found?.excessLow == null || found.excessHigh == null) {
      this.outside++;
      return 'no bounds';
    }
    const low = Math.round(found.excessLow * 1000);
    const high = Math.round(found.excessHigh * 1000);
    if (truth.excessMilliReq < low || truth.excessMilliReq > high) {
      this.outside++;
      return `${truth.excessMilliReq} outside [${low}, ${high}]${found.anchored ? ' anchored' : ''}`;
    }
    if (!found.anchored) this.widths.push(((high - low) * 1000) / this.#rates.get(found.zone)!);
    return '';
  }
}

/** @param requests the output of a replay of one of the capture's logs */
export function compareLive(capture: Capture, requests: readonly ReplayedRequest[]): LiveAgreement {
  const tally = new Tally(ratesOf(capture));
  for (const request of requests) {
    const truth = capture.truth.get(request.requestId ?? '');
    if (truth === undefined) throw new Error(`${capture.name}: no truth for ${request.requestId}`);
    tally.add(request, truth);
  }
  const widths = tally.widths.sort((a, b) => a - b);
  return {
    decided: tally.decided,
    wrong: tally.wrong,
    unexplained: tally.unexplained,
    meanPossible: tally.decided === 0 ? 0 : tally.possible / tally.decided,
    zoneRows: tally.zoneRows,
    outside: tally.outside,
    anchored: tally.anchored,
    wrongAnchors: tally.wrongAnchors,
    medianWidthMs: widths[widths.length >> 1] ?? 0,
    oddities: tally.oddities,
  };
}

/** Rates by zone in milliRps; of several generations the first one's. */
function ratesOf(capture: Capture): Map<string, number> {
  const rates = new Map<string, number>();
  const text = readFileSync(capture.confs[0]!, 'utf8');
  for (const match of text.matchAll(/zone=(\w+):\w+ +rate=(\d+)r\/([sm])/g)) {
    const n = Number(match[2]) * 1000;
    rates.set(match[1]!, match[3] === 's' ? n : Math.trunc(n / 60));
  }
  return rates;
}
