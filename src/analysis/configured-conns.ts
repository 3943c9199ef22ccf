/**
 * The limit_conn lines in force, modelled, and held against what nginx logged.
 *
 * Follows ngx_http_limit_conn_handler() through src/limit-req/limit-conn.ts: the first line that
 * refuses ends it, and what earlier lines took is given back.
 */
import { CONN_STATUS, ConnMemory, LimitConnModel } from '../limit-req/limit-conn.js';
import type { ReplaySession } from '../replay/session.js';
import { isRejected, STATUS } from '../replay/status.js';
import { ConnNodes } from './conn-nodes.js';
import type { ConnSubject } from './conn-subjects.js';
import type { HeldRequest } from './key-concurrency.js';

export interface ConfiguredAgreement {
  /** The lines, each `limit_conn ZONE N` with `FILE:LINE`. */
  readonly limits: readonly {
    readonly zone: string;
    readonly connections: number;
    readonly where: string;
    /** As modelled; what the zone had no memory for included. */
    readonly rejected: number;
  }[];
  readonly requests: number;
  readonly rejected: number;
  /** Refused for want of memory in the zone, as modelled. */
  readonly exhausted: number;
  /** As $limit_conn_status has it, and how often the model says the same; null where not logged. */
  readonly loggedRejected: number | null;
  readonly agree: number | null;
}

/** A zone as modelled. */
export interface ModelledConnZone {
  readonly nodes: ConnNodes;
  readonly rejected: number;
  readonly exhausted: number;
}

interface Line {
  /** Index into the model's zones, which are the subjects. */
  readonly zone: number;
  readonly connections: number;
  readonly where: string;
}

export class ConfiguredConns {
  readonly #session: ReplaySession;
  readonly #subjects: readonly ConnSubject[];
  readonly #model: LimitConnModel;
  /** By rule set. */
  readonly #lines: (readonly Line[] | undefined)[] = [];
  readonly #rejectedBy = new Map<string, { line: Line; rejected: number }>();
  /** By zone of the model. */
  readonly #nodes: readonly ConnNodes[];
  readonly #exhaustedBy: number[];
  #requests = 0;
  #rejected = 0;
  #exhausted = 0;
  #told = 0;
  #loggedRejected = 0;
  #agree = 0;

  constructor(session: ReplaySession, subjects: readonly ConnSubject[]) {
    this.#session = session;
    this.#subjects = subjects;
    this.#model = new LimitConnModel(subjects.map(({ memory }) => new ConnMemory(memory)));
    this.#nodes = this.#model.zones.map((memory) => new ConnNodes(memory));
    this.#exhaustedBy = subjects.map(() => 0);
  }

  /** By name; not those of which no request is known. */
  get zones(): Map<string, ModelledConnZone> {
    const rejected = this.#subjects.map(() => 0);
    for (const { line, rejected: ofLine } of this.#rejectedBy.values()) {
      rejected[line.zone]! += ofLine;
    }
    return new Map(
      this.#subjects.map((subject, i): [string, ModelledConnZone] => [
        subject.zone ?? '',
        {
          nodes: this.#nodes[i]!,
          rejected: rejected[i]! - this.#exhaustedBy[i]!,
          exhausted: this.#exhaustedBy[i]!,
        },
      ]),
    );
  }

  /** @returns what the request holds, for end(); null when no line asks for it */
  begin(
    rules: number,
    parts: readonly (HeldRequest | null)[],
    connLogged: number,
    atMs: number,
  ): Int32Array | null {
    const lines = this.#linesOf(rules);
    if (lines.length === 0) return null;
    const held = new Int32Array(lines.length);
    const status = this.#model.decide(
      lines,
      lines.map(({ zone }) => parts[zone]?.keyId ?? -1),
      lines.map(({ zone }) => parts[zone]?.keyLengthBytes ?? 0),
      held,
    );
    this.#count(lines, status, connLogged);
    for (const { zone } of lines) {
      const part = parts[zone];
      if (part == null) continue;
      this.#nodes[zone]!.keyLengthBytes = part.keyLengthBytes;
      this.#nodes[zone]!.note(atMs);
    }
    return held;
  }

  end(rules: number, held: Int32Array, atMs: number): void {
    const lines = this.#linesOf(rules);
    for (const { zone } of lines) this.#nodes[zone]!.note(atMs);
    this.#model.release(lines, held);
  }

  get agreement(): ConfiguredAgreement {
    const isTold = this.#told > 0;
    return {
      limits: Array.from(this.#rejectedBy.values(), ({ line, rejected }) => ({
        zone: this.#subjects[line.zone]!.zone ?? '',
        connections: line.connections,
        where: line.where,
        rejected,
      })),
      requests: this.#requests,
      rejected: this.#rejected,
      exhausted: this.#exhausted,
      loggedRejected: isTold ? this.#loggedRejected : null,
      agree: isTold ? this.#agree : null,
    };
  }

  #count(lines: readonly Line[], status: number, connLogged: number): void {
    const wasRejected = status === CONN_STATUS.rejected || status === CONN_STATUS.exhausted;
    this.#requests++;
    if (wasRejected) {
      this.#rejected++;
      const line = lines[this.#model.decidedBy]!;
      this.#rejectedBy.get(nameOf(line))!.rejected++;
    }
    if (status === CONN_STATUS.exhausted) {
      this.#exhausted++;
      this.#exhaustedBy[lines[this.#model.decidedBy]!.zone]!++;
    }
    if (connLogged === STATUS.unknown) return;
    this.#told++;
    if (isRejected(connLogged)) this.#loggedRejected++;
    if (isRejected(connLogged) === wasRejected) this.#agree++;
  }

  #linesOf(rules: number): readonly Line[] {
    const known = this.#lines[rules];
    if (known !== undefined) return known;
    const limits = this.#session.generations.ruleSets[rules]?.connLimits ?? [];
    const lines = limits.map(({ zone, connections, where: { path, line } }) => ({
      zone: this.#subjects.findIndex((subject) => subject.zone === zone),
      connections,
      where: `${path}:${line}`,
    }));
    for (const line of lines) {
      if (!this.#rejectedBy.has(nameOf(line)))
        this.#rejectedBy.set(nameOf(line), { line, rejected: 0 });
    }
    this.#lines[rules] = lines;
    return lines;
  }
}

function nameOf({ zone, connections, where }: Line): string {
  return `${zone} ${connections} ${where}`;
}
