/**
 * The newest rows of a replay in memory: what `limitlens top` shows of logs, without a store.
 *
 * Answers what StoreInputs asks a store; a test holds the two against each other. Rows
 * of one time and name are joined as the store joins them. Memory is bounded by the time that is
 * kept, and by the number of keys in a minute.
 */
import type { Filter } from '../store/filter.js';
import { JoinedRows, type Joined, type Shape } from './joined-rows.js';
import type {
  KeyOrder,
  OutcomeTotal,
  SourceTotal,
  StateTotal,
  TopInputs,
  TopKey,
  ZoneRate,
} from './snapshot.js';

/** More are not told apart: who floods a site with keys must not fill this machine's memory. */
const MOST_KEYS_PER_MINUTE = 200_000;

const HOUR_MS = 3_600_000;

type Kept = 'zone_outcomes' | 'responses' | 'key_minutes' | 'zone_state';

const SHAPES: Readonly<Record<Kept, Shape>> = {
  zone_outcomes: {
    time: 'bucket',
    names: ['instance', 'zone', 'kind', 'outcome'],
    sums: ['requests'],
    maxima: ['excess_max_milli'],
  },
  responses: {
    time: 'bucket',
    names: ['instance', 'status', 'source'],
    sums: ['requests'],
    maxima: [],
  },
  key_minutes: {
    time: 'minute',
    names: ['instance', 'zone', 'key'],
    sums: ['passed', 'delayed', 'rejected', 'exhausted', 'delayed_dry_run', 'rejected_dry_run'],
    maxima: ['excess_max_milli'],
  },
  zone_state: {
    time: 'bucket',
    names: ['instance', 'zone'],
    sums: ['evictions_in_debt'],
    maxima: ['nodes', 'capacity_nodes'],
  },
};

export class RecentRows implements TopInputs {
  readonly #keptMs: number;
  readonly #rows: Readonly<Record<Kept, JoinedRows>> = {
    zone_outcomes: new JoinedRows(SHAPES.zone_outcomes),
    responses: new JoinedRows(SHAPES.responses),
    key_minutes: new JoinedRows(SHAPES.key_minutes, MOST_KEYS_PER_MINUTE),
    zone_state: new JoinedRows(SHAPES.zone_state),
  };
  /** By instance and zone; the last that came. */
  readonly #rates = new Map<string, ZoneRate>();
  /** Begin of the first bucket that had a request. */
  #firstMs = Infinity;

  /** @param windowMs how far back the snapshots will look */
  constructor(windowMs: number) {
    this.#keptMs = windowMs + 120_000;
  }

  /** The first bucket with a request is not whole; what is before is not known. */
  get sinceMs(): number {
    return this.#firstMs;
  }

  /** Takes rows of the store's tables, and forgets those that are too old by them. */
  take(tables: readonly TakenRows[]): void {
    for (const { table, columns, rows } of tables) {
      for (const row of rows) {
        if (table in this.#rows) this.#rows[table as Kept].add(columns, row);
        else if (table === 'limits') this.#addRate(columns, row);
      }
    }
    const newestMs = this.#rows.responses.newestMs;
    if (newestMs === null) return;
    if (this.#firstMs === Infinity) {
      this.#firstMs = Math.min(...this.#rows.responses.in({}).map(([ms]) => ms));
    }
    for (const [table, rows] of Object.entries(this.#rows)) {
      const keptMs = table === 'zone_state' ? Math.max(HOUR_MS, this.#keptMs) : this.#keptMs;
      rows.forget(newestMs - keptMs);
    }
  }

  #addRate(columns: readonly string[], row: readonly unknown[]): void {
    const at = (column: string): unknown => row[columns.indexOf(column)];
    const [instance, zone] = [String(at('instance')), String(at('zone'))];
    const rateMilliRps = Number(at('rate_milli_rps'));
    this.#rates.set(JSON.stringify([instance, zone]), { instance, zone, rateMilliRps });
  }

  newestBucketMs(): Promise<number | null> {
    return Promise.resolve(this.#rows.responses.newestMs);
  }

  requests(filter: Filter): Promise<number> {
    const rows = this.#rows.responses.over(filter);
    return Promise.resolve(rows.reduce((sum, { numbers }) => sum + numbers[0]!, 0));
  }

  outcomes(filter: Filter): Promise<readonly OutcomeTotal[]> {
    const rows = this.#rows.zone_outcomes.over(filter).map(({ names, numbers }): OutcomeTotal => {
      const [instance, zone, kind, outcome] = names as [string, string, string, string];
      const [requests, excessMaxMilli] = numbers as [number, number];
      const isReq = kind === 'limit_req';
      const name = { instance, zone, kind: isReq ? 'limit_req' : 'limit_conn' } as const;
      return { ...name, outcome, requests, excessMaxMilli };
    });
    return Promise.resolve(rows);
  }

  states(filter: Filter): Promise<readonly StateTotal[]> {
    const states = new Map<string, StateTotal>();
    for (const [, { names, numbers }] of this.#rows.zone_state.in(filter)) {
      const [instance, zone] = names as [string, string];
      const [inDebt, nodes, capacityNodes] = numbers as [number, number, number];
      const id = JSON.stringify(names);
      const evictionsInDebt = (states.get(id)?.evictionsInDebt ?? 0) + inDebt;
      states.set(id, { instance, zone, nodes, capacityNodes, evictionsInDebt });
    }
    return Promise.resolve([...states.values()]);
  }

  rates(): Promise<readonly ZoneRate[]> {
    return Promise.resolve([...this.#rates.values()]);
  }

  sources(filter: Filter): Promise<readonly SourceTotal[]> {
    const rows = this.#rows.responses.over(filter).map(({ names, numbers }): SourceTotal => {
      return { status: Number(names[1]), source: names[2]!, requests: numbers[0]! };
    });
    const isOne = ({ status, source }: SourceTotal): boolean =>
      status === 429 || status === 503 || source !== '';
    return Promise.resolve(rows.filter(isOne));
  }

  keys(filter: Filter, order: KeyOrder, count: number): Promise<readonly TopKey[]> {
    const keys = this.#rows.key_minutes.over(filter).map(keyOf);
    const shown = keys.filter(
      ({ rejected, dryRun, delayed, excessMax }) =>
        rejected + dryRun + delayed > 0 || excessMax > 0,
    );
    return Promise.resolve(shown.sort(ORDERS[order]).slice(0, count));
  }
}

/** The same as spool records hold, and anything else that has rows by table. */
export interface TakenRows {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

function keyOf({ names, numbers }: Joined): TopKey {
  const [passed, delayed, rejected, exhausted, delayedDry, rejectedDry, excessMaxMilli] =
    numbers as [number, number, number, number, number, number, number];
  return {
    zone: names[1]!,
    key: names[2]!,
    ...{ passed, delayed, rejected: rejected + exhausted, dryRun: delayedDry + rejectedDry },
    excessMax: excessMaxMilli / 1000,
  };
}

type Compare = (a: TopKey, b: TopKey) => number;

const byRefused: Compare = (a, b) => b.rejected + b.dryRun - a.rejected - a.dryRun;
const byExcess: Compare = (a, b) => b.excessMax - a.excessMax;
const byName: Compare = (a, b) =>
  a.zone === b.zone ? (a.key < b.key ? -1 : 1) : a.zone < b.zone ? -1 : 1;

const ORDERS: Readonly<Record<KeyOrder, Compare>> = {
  rejected: (a, b) => byRefused(a, b) || b.delayed - a.delayed || byExcess(a, b) || byName(a, b),
  excess: (a, b) => byExcess(a, b) || byRefused(a, b) || byName(a, b),
};
