/**
 * The benchmark's access log: what nginx would have logged of a seeded stream of requests.
 *
 * Requests arrive as a Poisson process from clients drawn by Zipf's law. The exact limiter of
 * src/limit-req judges each at its arrival, and its verdict makes the line: a rejected request ends
 * at once with 429, a delayed one waits before its upstream is asked. Lines stand in the order of
 * their end, as nginx writes them, so delays and slow upstreams put decisions out of order.
 *
 * Units: epoch milliseconds; the limiter's clock and the log's are one, so `$msec - $request_time`
 * is the decision time exactly. Every request has a connection of its own, numbered by arrival:
 * that is the order of decisions within one millisecond.
 *
 * Not here: slow request headers, several workers, an error log.
 */
import { LimitReqModel, STATUS } from '../../src/limit-req/limits.js';
import { ZoneMemory } from '../../src/limit-req/zone-memory.js';
import {
  type Client,
  LIMIT,
  makeClient,
  makeReferer,
  makeRequestLine,
  REJECT_HTTP_STATUS,
  ZONE,
} from './corpus-site.js';
import { Random, Zipf } from './random.js';

export interface CorpusOptions {
  readonly lines: number;
  readonly seed: number;
  /** Clients that may appear; 100,000 by default. */
  readonly clients?: number;
  /** Arrivals per second, of all clients together; 1000 by default. */
  readonly rateRps?: number;
  /** Time of the first request, epoch milliseconds; some day by default. */
  readonly firstMs?: number;
}

/** What a corpus holds; what a faithful import has to find in it. */
export interface CorpusSummary {
  readonly lines: number;
  readonly bytes: number;
  readonly clients: number;
  readonly passed: number;
  readonly delayed: number;
  readonly rejected: number;
}

const DEFAULT_CLIENTS = 100_000;
const DEFAULT_RATE_RPS = 1000;
/** With the default rate: the three busiest clients ask more often than 10r/s. */
const ZIPF_EXPONENT = 0.85;
const FIRST_REQUEST_MS = Date.UTC(2026, 2, 2, 10);
const UPSTREAM_MEDIAN_MS = 40;
const UPSTREAM_MOST_MS = 2000;
const CHUNK_CHARACTERS = 1 << 18;

/**
 * Makes a corpus, some hundred kilobytes at a time.
 *
 * @returns chunks of whole lines; the summary as the generator's return value
 */
export function* makeCorpus(options: CorpusOptions): Generator<Buffer, CorpusSummary, undefined> {
  const traffic = new Traffic(options);
  const pending = new PendingLines(options.firstMs ?? FIRST_REQUEST_MS);
  let bytes = 0;
  for (let i = 0; i < options.lines; i++) {
    traffic.next();
    if (pending.endedText.length >= CHUNK_CHARACTERS) {
      const chunk = pending.takeEnded();
      bytes += chunk.length;
      yield chunk;
    }
    pending.advance(traffic.nowMs);
    pending.add(traffic.endMs, traffic.line());
  }
  // Nobody is left in flight: a charge whose line is missing could not be replayed.
  pending.advance(Infinity);
  const chunk = pending.takeEnded();
  yield chunk;
  return { ...traffic.counts(), lines: options.lines, bytes: bytes + chunk.length };
}

/** Lines of requests in flight, by the millisecond in which they end. */
class PendingLines {
  endedText = '';
  readonly #byEndMs = new Map<number, string>();
  #nextMs: number;

  constructor(firstMs: number) {
    this.#nextMs = firstMs;
  }

  add(endMs: number, line: string): void {
    this.#byEndMs.set(endMs, (this.#byEndMs.get(endMs) ?? '') + line);
  }

  /** Writes what has ended before nowMs. */
  advance(nowMs: number): void {
    while (this.#nextMs < nowMs && this.#byEndMs.size > 0) {
      const lines = this.#byEndMs.get(this.#nextMs);
      if (lines !== undefined) {
        this.endedText += lines;
        this.#byEndMs.delete(this.#nextMs);
      }
      this.#nextMs++;
    }
    if (this.#byEndMs.size === 0 && nowMs !== Infinity) this.#nextMs = nowMs;
  }

  takeEnded(): Buffer {
    const chunk = Buffer.from(this.endedText, 'latin1');
    this.endedText = '';
    return chunk;
  }
}

/** One request at a time: who, when, the limiter's verdict, and the line that comes of it. */
class Traffic {
  nowMs: number;
  endMs = 0;

  readonly #random: Random;
  readonly #ranks: Zipf;
  readonly #clients: readonly Client[];
  readonly #hasAppeared: Uint8Array;
  readonly #meanGapMs: number;
  readonly #limits = [LIMIT];
  readonly #model: LimitReqModel;
  readonly #keyIds = new Int32Array(1);
  readonly #keyLengths = new Int32Array(1);
  readonly #byStatus = new Float64Array(4);
  readonly #draw = (bound: number): number => this.#random.below(bound);

  #arrivalMs: number;
  #connection = 0;
  #upstreamMs = 0;
  #httpStatus = 0;

  constructor(options: CorpusOptions) {
    const { seed, clients = DEFAULT_CLIENTS, rateRps = DEFAULT_RATE_RPS } = options;
    this.nowMs = options.firstMs ?? FIRST_REQUEST_MS;
    this.#arrivalMs = this.nowMs;
    this.#random = new Random(seed);
    this.#ranks = new Zipf(clients, ZIPF_EXPONENT);
    this.#clients = Array.from({ length: clients }, (_, rank) => makeClient(rank));
    this.#hasAppeared = new Uint8Array(clients);
    this.#meanGapMs = 1000 / rateRps;
    this.#model = new LimitReqModel([new ZoneMemory({ ...ZONE, nameLength: ZONE.name.length })]);
  }

  /** Draws a request and lets the limiter decide it. */
  next(): void {
    this.#arrivalMs += this.#random.exponential(this.#meanGapMs);
    this.nowMs = Math.floor(this.#arrivalMs);
    this.#connection++;
    const rank = this.#ranks.draw(this.#random);
    this.#hasAppeared[rank] = 1;
    this.#keyIds[0] = rank;
    this.#keyLengths[0] = this.#clients[rank]!.keyLengthBytes;
    const status = this.#model.decide(this.#limits, this.#keyIds, this.#keyLengths, this.nowMs);
    this.#byStatus[status] = this.#byStatus[status]! + 1;
    this.#upstreamMs = status === STATUS.rejected ? 0 : this.#drawUpstreamMs();
    // nginx takes up to a millisecond of its own around a proxied request.
    const ownMs = status === STATUS.rejected ? 0 : this.#random.below(2);
    this.endMs = this.nowMs + this.#model.delayMs + this.#upstreamMs + ownMs;
  }

  /** The line of the last request, with its newline. */
  line(): string {
    const { address, userAgent } = this.#clients[this.#keyIds[0]!]!;
    const request = makeRequestLine(this.#draw);
    const referer = makeReferer(this.#draw);
    const head = `${address} - - [${timeLocal(this.endMs)}] "${request}" ${this.#answer()}`;
    const times = `${secondsText(this.endMs)} ${secondsText(this.endMs - this.nowMs)}`;
    return `${head} "${referer}" "${userAgent}" ${times} ${this.#limitFields()} ${this.#connection}\n`;
  }

  counts(): Omit<CorpusSummary, 'lines' | 'bytes'> {
    return {
      clients: this.#hasAppeared.reduce((sum, flag) => sum + flag, 0),
      passed: this.#byStatus[STATUS.passed]!,
      delayed: this.#byStatus[STATUS.delayed]!,
      rejected: this.#byStatus[STATUS.rejected]!,
    };
  }

  /** $status and $body_bytes_sent. */
  #answer(): string {
    if (this.#model.status === STATUS.rejected) {
      this.#httpStatus = REJECT_HTTP_STATUS;
      return `${REJECT_HTTP_STATUS} 162`;
    }
    const share = this.#random.uniform();
    this.#httpStatus = share < 0.9 ? 200 : share < 0.96 ? 304 : share < 0.998 ? 404 : 503;
    return `${this.#httpStatus} ${this.#httpStatus === 304 ? 0 : 150 + this.#random.below(40_000)}`;
  }

  /** $upstream_response_time to $limit_conn_status. */
  #limitFields(): string {
    if (this.#model.status === STATUS.rejected) return '- - REJECTED -';
    const status = this.#model.status === STATUS.delayed ? 'DELAYED' : 'PASSED';
    return `${secondsText(this.#upstreamMs)} ${this.#httpStatus} ${status} -`;
  }

  #drawUpstreamMs(): number {
    const ms = UPSTREAM_MEDIAN_MS * Math.exp(0.8 * this.#random.normal());
    return Math.min(UPSTREAM_MOST_MS, Math.floor(ms));
  }
}

const THOUSANDTHS = Array.from({ length: 1000 }, (_, ms) => String(ms).padStart(3, '0'));

/** As ngx_http_log_msec() and ngx_http_log_request_time() print it. */
function secondsText(ms: number): string {
  return `${Math.floor(ms / 1000)}.${THOUSANDTHS[ms % 1000]!}`;
}

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
let shownSecond = -1;
let shownTime = '';

/** `02/Mar/2026:10:00:00 +0000`; the text of the last second is kept, for most lines share it. */
function timeLocal(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== shownSecond) {
    shownSecond = second;
    const iso = new Date(second * 1000).toISOString();
    const month = MONTHS[Number(iso.slice(5, 7)) - 1]!;
    shownTime = `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`;
  }
  return shownTime;
}
