/**
 * Finds the error-log line of a request, and the request of an error-log line.
 *
 * A line carries nginx's exact excess, so a wrong match is worse than none. With $connection in
 * the access log the connection number tells; lines of a connection stand in decision order. Without
 * it client, request line, zone and second must be the same, and there must be one request for one
 * line: what is ambiguous is counted and joined to nobody.
 *
 * Lines wait here until the replay has passed their second. Units: epoch milliseconds.
 */

/** A limiting or delaying line of limit_req or limit_conn, or one of a zone without memory. */
export interface WaitingLine {
  readonly kind: 'rejected' | 'delayed' | 'connections' | 'exhausted' | 'connections_exhausted';
  readonly isDryRun: boolean;
  /** Rank in the order of the error logs read. */
  readonly rank: number;
  /** Start of the second that the line was written in. */
  readonly secondMs: number;
  readonly pid: number;
  readonly connection: number;
  readonly zone: string;
  readonly excessMilliReq: number;
  readonly client: string;
  readonly server: string;
  /** The request line as the client sent it, latin1; empty when the line was cut before its end. */
  readonly request: string;
  readonly host: string;
  isUsed: boolean;
  /** Read by an earlier import beside the access log of its time: counts when no request takes it. */
  readonly isOwed?: true;
}

export interface LineJoinSnapshot {
  /** Oldest first; JSON has no NaN. */
  readonly lines: readonly (Omit<WaitingLine, 'excessMilliReq'> & {
    readonly excessMilliReq: number | null;
  })[];
  readonly requests: readonly (readonly [string, number])[];
  readonly alerts: readonly (readonly [string, number])[];
  readonly joined: number;
  readonly ambiguous: number;
}

/** What is known of the request that looks for its line. */
export interface Seeker {
  readonly kind: WaitingLine['kind'];
  readonly isDryRun: boolean;
  /** The line was written in a second that touches [fromMs, toMs]. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly zones: readonly string[];
}

const SECOND_MS = 1000;
/** A request may wait no longer than this for its line to be looked for, second by second. */
const MOST_SECONDS = 120;

export class LineJoin {
  readonly #byConnection = new Map<number, WaitingLine[]>();
  readonly #bySignature = new Map<string, WaitingLine[]>();
  readonly #requests = new Map<string, number>();
  readonly #alerts = new Map<string, number>();
  /** All waiting lines, oldest first. */
  #queue: WaitingLine[] = [];
  #queueAt = 0;
  /** Whether the access log tells the connection. */
  readonly #usesConnection: boolean;
  joined = 0;
  ambiguous = 0;

  constructor(usesConnection: boolean) {
    this.#usesConnection = usesConnection;
  }

  get waiting(): number {
    return this.#queue.length - this.#queueAt;
  }

  add(line: WaitingLine): void {
    if (isAlert(line)) {
      this.addAlert(`${line.kind === 'exhausted' ? REQ : CONN}${line.zone}`, line.secondMs);
      return;
    }
    this.#queue.push(line);
    if (this.#usesConnection) append(this.#byConnection, line.connection, line);
    else
      append(
        this.#bySignature,
        signature(line.client, line.request, line.kind, line.secondMs),
        line,
      );
  }

  /** A zone had no page (limit_req) or no room (limit_conn) for a node; nginx names no request. */
  addAlert(zone: string, secondMs: number): void {
    const key = `${zone}\0${secondMs}`;
    this.#alerts.set(key, (this.#alerts.get(key) ?? 0) + 1);
  }

  /**
   * Takes one allocation failure of the zone out of the second that [fromMs, toMs] touches.
   * The line names no request, so any one of that second's may be meant.
   */
  takeAlert(zone: string, fromMs: number, toMs: number): boolean {
    if (this.#alerts.size === 0) return false;
    for (let ms = floorSecond(fromMs); ms <= toMs; ms += SECOND_MS) {
      const key = `${zone}\0${ms}`;
      const left = this.#alerts.get(key);
      if (left === undefined) continue;
      if (left === 1) this.#alerts.delete(key);
      else this.#alerts.set(key, left - 1);
      return true;
    }
    return false;
  }

  /**
   * The line of a request on this connection. Of several, the first one whose request line is the
   * same, else the first; but one before it that may have been led to where the request was
   * answered comes first: on a connection nginx takes one request after another.
   *
   * @param isSame tells whether a line's request line is the request's own; undefined when the
   *   access log does not carry enough to tell
   * @param mayBeLed whether the location of a line's request may have led it on to another URI
   */
  takeByConnection(
    connection: number,
    seeker: Seeker,
    isSame: (request: string) => boolean | undefined,
    mayBeLed: (line: WaitingLine) => boolean = () => false,
  ): WaitingLine | undefined {
    const lines = this.#byConnection.get(connection);
    if (lines === undefined) return undefined;
    let unsure: WaitingLine | undefined;
    for (const line of lines) {
      if (line.isUsed || !fits(line, seeker)) continue;
      const same = line.request === '' ? undefined : isSame(line.request);
      if (same === true) {
        const isLed = unsure !== undefined && !isStream(unsure) && mayBeLed(unsure);
        return this.#use(isLed ? unsure! : line);
      }
      if (same === undefined) unsure ??= line;
    }
    return unsure === undefined ? undefined : this.#use(unsure);
  }

  /**
   * The line of a request on this connection that was answered under another URI: its zone may be
   * any, and its request line is not known to be the request's own, nor to be another's.
   */
  findRedirected(
    connection: number,
    seeker: Seeker,
    isSame: (request: string) => boolean | undefined,
  ): WaitingLine | undefined {
    let unsure: WaitingLine | undefined;
    for (const line of this.#byConnection.get(connection) ?? []) {
      if (line.isUsed || line.request === '') continue;
      if (!fits(line, { ...seeker, isDryRun: line.isDryRun, zones: [line.zone] })) continue;
      const same = isSame(line.request);
      if (same === true) return undefined;
      if (same === undefined) unsure ??= line;
    }
    return unsure;
  }

  /** Announces a request that will look for its line without a connection number. */
  expect(client: string, request: string, seeker: Seeker): void {
    for (const key of seconds(client, request, seeker)) {
      this.#requests.set(key, (this.#requests.get(key) ?? 0) + 1);
    }
  }

  /** The line of a request announced by expect(), when exactly one fits it and it alone. */
  takeBySignature(client: string, request: string, seeker: Seeker): WaitingLine | undefined {
    let found: WaitingLine | undefined;
    let rivals = 0;
    for (const key of seconds(client, request, seeker)) {
      rivals = Math.max(rivals, this.#requests.get(key) ?? 0);
      for (const line of this.#bySignature.get(key) ?? []) {
        if (!fits(line, seeker)) continue;
        if (found !== undefined || rivals > 1) {
          this.ambiguous++;
          line.isUsed = true;
          found = undefined;
          return undefined;
        }
        found = line;
      }
    }
    if (found === undefined || found.isUsed) return undefined;
    if (rivals > 1) {
      this.ambiguous++;
      found.isUsed = true;
      return undefined;
    }
    return this.#use(found);
  }

  /** Forgets all lines of seconds that ended before this moment; gives back those nobody took. */
  expire(beforeMs: number, onUnmatched: (line: WaitingLine) => void): void {
    while (this.#queueAt < this.#queue.length) {
      const line = this.#queue[this.#queueAt]!;
      if (line.secondMs + SECOND_MS > beforeMs) break;
      this.#queueAt++;
      this.#forget(line);
      if (!line.isUsed) onUnmatched(line);
    }
    if (this.#alerts.size > 0) this.#expireAlerts(beforeMs, onUnmatched);
    if (this.#queueAt > 4096) {
      this.#queue = this.#queue.slice(this.#queueAt);
      this.#queueAt = 0;
    }
    if (this.#requests.size > 100_000) dropOld(this.#requests, beforeMs);
    if (this.#alerts.size > 10_000) dropOld(this.#alerts, beforeMs);
  }

  /** Allocation failures whose requests are in no access log. They came in order of time. */
  #expireAlerts(beforeMs: number, onUnmatched: (line: WaitingLine) => void): void {
    for (const [key, count] of this.#alerts) {
      const [zone, secondMs] = splitAlert(key);
      if (secondMs + SECOND_MS > beforeMs) return;
      this.#alerts.delete(key);
      for (let i = 0; i < count; i++) onUnmatched(lineOfAlert(zone, secondMs));
    }
  }

  /** All that is remembered, as plain JSON. */
  snapshot(): LineJoinSnapshot {
    return {
      lines: this.#queue
        .slice(this.#queueAt)
        .map((line) => ({ ...line, excessMilliReq: orNull(line.excessMilliReq) })),
      requests: [...this.#requests],
      alerts: [...this.#alerts],
      joined: this.joined,
      ambiguous: this.ambiguous,
    };
  }

  /** Goes on from a snapshot; before the first line. */
  restore(snapshot: LineJoinSnapshot): void {
    for (const line of snapshot.lines) {
      this.add({ ...line, excessMilliReq: line.excessMilliReq ?? NaN });
    }
    for (const [key, count] of snapshot.requests) this.#requests.set(key, count);
    for (const [key, count] of snapshot.alerts) this.#alerts.set(key, count);
    this.joined = snapshot.joined;
    this.ambiguous = snapshot.ambiguous;
  }

  /** The lines nobody has taken yet, oldest first, and behind them the allocation failures. */
  pending(): WaitingLine[] {
    const lines = this.#queue.slice(this.#queueAt).filter((line) => !line.isUsed);
    for (const [key, count] of this.#alerts) {
      for (let i = 0; i < count; i++) lines.push(lineOfAlert(...splitAlert(key)));
    }
    return lines;
  }

  #use(line: WaitingLine): WaitingLine {
    line.isUsed = true;
    this.joined++;
    return line;
  }

  #forget(line: WaitingLine): void {
    if (this.#usesConnection) drop(this.#byConnection, line.connection, line);
    else
      drop(this.#bySignature, signature(line.client, line.request, line.kind, line.secondMs), line);
  }
}

function fits(line: WaitingLine, seeker: Seeker): boolean {
  return (
    line.kind === seeker.kind &&
    line.isDryRun === seeker.isDryRun &&
    line.secondMs + SECOND_MS > seeker.fromMs &&
    line.secondMs <= seeker.toMs &&
    seeker.zones.includes(line.zone)
  );
}

/** One of several requests at a time on a connection, which may end in another order. */
function isStream({ request }: WaitingLine): boolean {
  return / HTTP\/[23]/.test(request);
}

function signature(client: string, request: string, kind: string, secondMs: number): string {
  return `${client}\0${request}\0${kind}\0${secondMs}`;
}

function seconds(client: string, request: string, seeker: Seeker): string[] {
  const keys: string[] = [];
  const from = Math.max(
    floorSecond(seeker.fromMs),
    floorSecond(seeker.toMs) - MOST_SECONDS * SECOND_MS,
  );
  for (let ms = from; ms <= seeker.toMs; ms += SECOND_MS) {
    keys.push(signature(client, request, seeker.kind, ms));
  }
  return keys;
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

/** Whether the line tells of a zone without memory, and so names no request. */
export function isAlert({ kind }: WaitingLine): boolean {
  return kind === 'exhausted' || kind === 'connections_exhausted';
}

/** A key of #alerts: the module and the zone, and the second. */
function splitAlert(key: string): [zone: string, secondMs: number] {
  const at = key.indexOf('\0');
  return [key.slice(0, at), Number(key.slice(at + 1))];
}

const CONN = 'limit_conn ';
const REQ = 'limit_req ';

/** nginx names neither client nor server, nor whether it was under dry run. */
function lineOfAlert(zone: string, secondMs: number): WaitingLine {
  const isConn = zone.startsWith(CONN);
  return {
    kind: isConn ? 'connections_exhausted' : 'exhausted',
    isDryRun: false,
    rank: -1,
    secondMs,
    pid: -1,
    connection: -1,
    zone: zone.slice((isConn ? CONN : REQ).length),
    excessMilliReq: NaN,
    client: '',
    server: '',
    request: '',
    host: '',
    isUsed: false,
  };
}

function floorSecond(ms: number): number {
  return Math.floor(ms / SECOND_MS) * SECOND_MS;
}

function append<K>(map: Map<K, WaitingLine[]>, key: K, line: WaitingLine): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [line]);
  else list.push(line);
}

function drop<K>(map: Map<K, WaitingLine[]>, key: K, line: WaitingLine): void {
  const list = map.get(key);
  if (list === undefined) return;
  const at = list.indexOf(line);
  if (at >= 0) list.splice(at, 1);
  if (list.length === 0) map.delete(key);
}

/** Keys end in `\0` and their second. */
function dropOld(map: Map<string, number>, beforeMs: number): void {
  for (const key of map.keys()) {
    if (Number(key.slice(key.lastIndexOf('\0') + 1)) + SECOND_MS <= beforeMs) map.delete(key);
  }
}
