/**
 * What `limitlens replay` prints of a request: a JSON line, an entry of a JSON array, or a line of a
 * table.
 *
 * Excess is in requests with three decimals, times are epoch milliseconds.
 */
import { cell } from '../report/table.js';

export interface ReplayedRequest {
  readonly requestId: string | null;
  readonly connection: number | null;
  readonly connectionRequests: number | null;
  readonly decisionMs: number;
  readonly status: number | null;
  /** In nginx's words, as are verdict and possible. */
  readonly logged: string | null;
  readonly verdict: string | null;
  readonly possible: readonly (string | null)[];
  readonly source: string | null;
  readonly zones: readonly ReplayedZone[];
}

export interface ReplayedZone {
  readonly index: number;
  readonly zone: string;
  readonly key: string | null;
  readonly outcome: string;
  readonly anchored: boolean;
  readonly excess: number | null;
  readonly excessLow: number | null;
  readonly excessHigh: number | null;
}

export interface ReplayShape {
  readonly head: string;
  readonly row: (request: ReplayedRequest, isFirst: boolean) => string;
  readonly foot: string;
}

const TIME = 24;
const STATUS = 6;
const WORD = 17;
const SOURCE = 24;

export const REPLAY_SHAPES: Readonly<Record<'jsonl' | 'json' | 'text', ReplayShape>> = {
  jsonl: { head: '', row: (request) => `${JSON.stringify(request)}\n`, foot: '' },
  json: {
    head: '[',
    row: (request, isFirst) => `${isFirst ? '\n' : ',\n'}${JSON.stringify(request)}`,
    foot: '\n]\n',
  },
  text: {
    head: line('decided', 'status', 'logged', 'verdict', 'source', 'zones: excess (bounds) key'),
    row: textRow,
    foot: '',
  },
};

/** A line as wide as its words; columns stay where they are, for nothing is known of later rows. */
function textRow(request: ReplayedRequest): string {
  const { decisionMs, status, logged, verdict, source, zones } = request;
  return line(
    new Date(decisionMs).toISOString(),
    String(status ?? '-'),
    logged ?? '-',
    // A verdict that the log bears out needs no second look.
    verdict === logged ? '=' : (verdict ?? '-'),
    source ?? '-',
    zones.map(zoneText).join('; '),
  );
}

function zoneText({ zone, key, outcome, excess, excessLow, excessHigh }: ReplayedZone): string {
  const name = `${cell(zone)} ${outcome}`;
  if (excess === null) return name;
  const isExact = excessLow === excessHigh;
  const bounds = isExact ? '' : ` (${fixed(excessLow)}…${fixed(excessHigh)})`;
  return `${name} ${fixed(excess)}${bounds} ${key === null ? '' : cell(key, 40)}`.trimEnd();
}

function fixed(requests: number | null): string {
  return requests === null ? '-' : requests.toFixed(3);
}

function line(
  time: string,
  status: string,
  logged: string,
  verdict: string,
  source: string,
  zones: string,
): string {
  const columns = [
    time.padEnd(TIME),
    status.padStart(STATUS),
    logged.padEnd(WORD),
    verdict.padEnd(WORD),
    source.padEnd(SOURCE),
    zones,
  ];
  return `${columns.join('  ').trimEnd()}\n`;
}
