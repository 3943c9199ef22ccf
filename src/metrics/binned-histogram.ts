/**
 * A histogram whose observations come as counts per bin: prom-client's own takes them one by one.
 *
 * Its sum takes each observation as the middle of its bin, so a mean is good to half a bin. Not here:
 * what the bins are of (tail-metrics.ts).
 */
export interface Bin {
  /** All that it holds is at most this; Infinity for the last. */
  readonly upTo: number;
  readonly middle: number;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly counts: number[];
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** What a registry of prom-client asks of a metric. */
export class BinnedHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #bins: readonly Bin[];
  /** Upper bounds that are shown, ascending; the last is Infinity. */
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(
    definition: { readonly name: string; readonly help: string },
    bins: readonly Bin[],
    bounds: readonly number[],
  ) {
    this.name = definition.name;
    this.help = definition.help;
    this.#bins = bins;
    this.#bounds = bounds;
  }

  /** @param bin position among the bins; beyond them is the last */
  add(labels: Readonly<Record<string, string>>, bin: number, count: number): void {
    const key = JSON.stringify(Object.entries(labels).sort());
    let series = this.#series.get(key);
    if (series === undefined) {
      series = { labels, counts: this.#bins.map(() => 0) };
      this.#series.set(key, series);
    }
    series.counts[Math.min(bin, this.#bins.length - 1)]! += count;
  }

  get(): Promise<{
    readonly name: string;
    readonly help: string;
    readonly type: 'histogram';
    readonly aggregator: 'sum';
    readonly values: readonly Sample[];
  }> {
    const { name, help, type, aggregator } = this;
    const values = [...this.#series.values()].flatMap((series) => this.#samples(series));
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  reset(): void {
    this.#series.clear();
  }

  #samples({ labels, counts }: Series): Sample[] {
    const atMost = (bound: number): number =>
      counts.reduce((sum, n, i) => (this.#bins[i]!.upTo <= bound ? sum + n : sum), 0);
    const buckets = this.#bounds.map((bound) => ({
      metricName: `${this.name}_bucket`,
      labels: { ...labels, le: bound === Infinity ? '+Inf' : String(bound) },
      value: atMost(bound),
    }));
    const sum = counts.reduce((all, n, i) => all + n * this.#bins[i]!.middle, 0);
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: atMost(Infinity) },
    ];
  }
}
