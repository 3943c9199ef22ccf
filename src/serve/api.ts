/**
 * The page's API: read-only, every statement bounded in time, rows and number.
 *
 * `/api/dashboards`, `/api/span`, `/api/variables`, `/api/annotations`, `/api/panel/ID` (JSON, or a
 * file to keep with `download=csv` or `download=json`), `/api/examples`, `/api/example`, `/api/live`.
 * `from`, `to` and the variables instance, server, location, zone and key choose what it is about
 * (choice.ts).
 *
 * Not here: logins, TLS, limits on connections (../http), the page itself (assets.ts).
 */
import { ANNOTATIONS } from '../../dashboards/catalogue/annotations.js';
import { DASHBOARDS } from '../../dashboards/catalogue/dashboards.js';
import type { Panel } from '../../dashboards/catalogue/panel.js';
import { VARIABLES } from '../../dashboards/catalogue/variables.js';
import type {
  Cell,
  Mark,
  PanelAnswer,
  SpanAnswer,
  VariableOption,
} from '../../dashboards/page/wire.js';
import type { TimeRange } from '../../dashboards/expand.js';
import {
  HttpError,
  json,
  type Handler,
  type HttpRequest,
  type Reply,
  type Route,
} from '../http/route.js';
import { MINUTE_SECONDS } from '../store/filter.js';
import type { Store } from '../store/store.js';
import { catalogueAnswer } from './catalogue-answer.js';
import {
  checkNames,
  chooseStep,
  chooseTime,
  chooseValues,
  rowSecondsOf,
  wholeRows,
  type Span,
} from './choice.js';
import { csv } from './csv.js';
import { examplesSql, readExample, type ExampleQuestion } from './examples.js';
import { explainExample } from './explain-example.js';
import { Live } from './live.js';
import { PanelRows, QUERY_LIMITS, type QueryLimits, type Table } from './panel-rows.js';

export interface ApiOptions {
  /** Of limitlens. */
  readonly version: string;
  readonly limits?: Partial<QueryLimits>;
  /** How often the store is asked for news while a page is open. */
  readonly pollMs?: number;
  readonly now?: () => number;
}

const POLL_MS = 2000;
const CHOOSING = ['from', 'to', 'points', ...VARIABLES.map(({ name }) => name)];
const PANELS: ReadonlyMap<string, Panel> = new Map(
  DASHBOARDS.flatMap(({ panels }) => panels.map((panel) => [panel.id, panel])),
);

const SPAN_SQL = `SELECT toUnixTimestamp(min(low)) * 1000 AS fromMs,
  (toUnixTimestamp(max(high)) + 10) * 1000 AS toMs, sum(buckets) AS found
FROM (
  SELECT min(bucket) AS low, max(bucket) AS high, count() AS buckets FROM responses
  UNION ALL
  SELECT min(bucket) AS low, max(bucket) AS high, count() AS buckets FROM zone_outcomes
)
WHERE buckets > 0`;
const VERSION_SQL = `SELECT toString(sum(last)) AS version
FROM (SELECT instance, max(sequence) AS last FROM checkpoints GROUP BY instance)`;

export class PageApi {
  readonly #rows: PanelRows;
  readonly #options: ApiOptions;
  readonly #live: Live;

  constructor(store: Store, options: ApiOptions) {
    this.#rows = new PanelRows(store, { ...QUERY_LIMITS, ...options.limits });
    this.#options = options;
    this.#live = new Live({
      pollMs: options.pollMs ?? POLL_MS,
      readVersion: () => this.#version(),
    });
  }

  routes(): Route[] {
    const catalogue = catalogueAnswer(this.#options.version);
    const handlers: Readonly<Record<string, Handler>> = {
      '/api/dashboards': () => json(catalogue),
      '/api/span': (request) => this.#spanAnswer(request),
      '/api/variables': (request) => this.#variables(request),
      '/api/annotations': (request) => this.#annotations(request),
      '/api/panel/*': (request) => this.#panel(request),
      '/api/examples': (request) => this.#examples(request),
      '/api/example': (request) => this.#example(request),
      '/api/live': (request, response) => this.#live.listen(request, response),
    };
    return Object.entries(handlers).map(([path, handle]) => ({
      path,
      handle: (request, response) => {
        refuseForeignPages(request);
        return handle(request, response);
      },
    }));
  }

  get #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }

  async #version(): Promise<string> {
    const statement = { sql: VERSION_SQL, params: {} };
    const never = new AbortController().signal;
    const [row] = await this.#rows.objects<{ version: string }>(statement, never);
    return row?.version ?? '0';
  }

  async #span(gone: AbortSignal): Promise<Span | undefined> {
    const statement = { sql: SPAN_SQL, params: {} };
    const [row] = await this.#rows.objects<Span & { found: number }>(statement, gone);
    return row === undefined || row.found === 0 ? undefined : row;
  }

  async #spanAnswer({ query, gone }: HttpRequest): Promise<Reply> {
    checkNames(query, []);
    const span = await this.#span(gone);
    const answer: SpanAnswer = {
      span: span === undefined ? null : { fromMs: span.fromMs, toMs: span.toMs },
      nowMs: this.#nowMs,
    };
    return json(answer);
  }

  /** @param rowSeconds of the rows that are asked for: the one in which the time begins is in */
  async #range({ query, gone }: HttpRequest, rowSeconds: number): Promise<TimeRange> {
    const span = await chooseTime(query, this.#nowMs, () => this.#span(gone));
    return wholeRows(span, rowSeconds, chooseStep(query, span, rowSeconds));
  }

  async #variables(request: HttpRequest): Promise<Reply> {
    const { query, gone } = request;
    checkNames(query, [...CHOOSING, 'name']);
    const names = query.getAll('name');
    const wanted = VARIABLES.filter(({ name }) => names.length === 0 || names.includes(name));
    const range = await this.#range(request, MINUTE_SECONDS);
    const choice = chooseValues(query);
    const options: Record<string, VariableOption[]> = {};
    for (const { name, sql } of wanted) {
      const { columns, rows } = await this.#rows.table(sql, range, choice, gone);
      const [value, text] = ['value', 'text'].map((n) => columns.findIndex((c) => c.name === n));
      options[name] = rows.map((row) => ({ value: String(row[value!]), text: String(row[text!]) }));
    }
    return json({ options });
  }

  async #annotations(request: HttpRequest): Promise<Reply> {
    checkNames(request.query, CHOOSING);
    const range = await this.#range(request, 1);
    const choice = chooseValues(request.query);
    const marks: Mark[] = [];
    for (const { id, title, sql } of ANNOTATIONS) {
      const { columns, rows } = await this.#rows.table(sql, range, choice, request.gone);
      const at = (row: readonly Cell[], name: string) =>
        row[columns.findIndex((column) => column.name === name)] ?? null;
      for (const row of rows) {
        const fromMs = Number(at(row, 'time'));
        const toMs = Number(at(row, 'timeEnd') ?? fromMs);
        const [text, tags] = [String(at(row, 'text')), String(at(row, 'tags'))];
        marks.push({ id, title, fromMs, toMs, text, tags });
      }
    }
    return json({ marks });
  }

  async #panel(request: HttpRequest): Promise<Reply> {
    const panel = PANELS.get(request.rest);
    if (panel === undefined) throw new HttpError(404, 'no panel of that id: see /api/dashboards');
    checkNames(request.query, [...CHOOSING, 'download']);
    const range = await this.#range(request, rowSecondsOf(panel.sql, panel.minIntervalSeconds));
    const choice = chooseValues(request.query);
    const table = await this.#rows.table(panel.sql, range, choice, request.gone);
    return answerTable(request.query, panel.id, range, table, panel.hidden);
  }

  async #examples(request: HttpRequest): Promise<Reply> {
    checkNames(request.query, [...CHOOSING, 'download']);
    const range = await this.#range(request, 1);
    const choice = chooseValues(request.query);
    const sql = examplesSql(choice['key']?.length !== 0);
    const table = await this.#rows.table(sql, range, choice, request.gone);
    return answerTable(request.query, 'examples', range, table);
  }

  async #example({ query, gone }: HttpRequest): Promise<Reply> {
    const names = ['instance', 'server', 'location', 'time', 'zone', 'key', 'path'] as const;
    checkNames(query, names);
    const words = names.map((name) => [name, query.get(name) ?? ''] as const);
    const question = Object.fromEntries(words) as unknown as ExampleQuestion;
    if (!/^\d{1,15}$/.test(question.time)) {
      throw new HttpError(400, 'expected time in epoch milliseconds');
    }
    const found = await readExample(this.#rows, question, gone);
    if (found === undefined) throw new HttpError(404, 'no such example is kept');
    return json({ example: found.example, explanation: explainExample(found) });
  }
}

/** A page of another site can't read answers, and shall not make the store work either. */
function refuseForeignPages({ headers }: HttpRequest): void {
  if (headers['sec-fetch-site'] !== 'cross-site') return;
  throw new HttpError(403, 'expected to be asked by the page itself, not by another site');
}

function answerTable(
  query: URLSearchParams,
  id: string,
  range: TimeRange,
  { columns, rows, isCut }: Table,
  hidden: readonly string[] = [],
): Reply {
  const { fromMs, intervalMs: stepMs } = range;
  // As it was asked for: wholeRows() took the end off.
  const toMs = range.toMs + 1;
  const download = query.get('download');
  if (download === null) {
    const answer: PanelAnswer = { id, fromMs, toMs, stepMs, columns, rows, isCut };
    return json(answer);
  }
  const headers = {
    'Content-Disposition': `attachment; filename="${id}.${download}"`,
    'X-Limitlens-Cut': String(isCut),
  };
  if (download === 'csv') {
    return { type: 'text/csv; charset=utf-8', body: csv(columns, rows, hidden), headers };
  }
  if (download !== 'json') throw new HttpError(400, 'expected download=csv or download=json');
  const objects = rows.map((row) =>
    Object.fromEntries(
      columns.flatMap(({ name, type }, at) => {
        const value = row[at] ?? null;
        const isTime = type === 'time' && value !== null;
        return hidden.includes(name) ? [] : [[name, isTime ? isoOf(value) : value]];
      }),
    ),
  );
  return { ...json(objects), headers };
}

function isoOf(ms: Cell): string {
  return new Date(Number(ms)).toISOString();
}
