/**
 * The page's API over the real engine: rows are those that the catalogue's own statements give, values
 * of a request never become SQL, and nothing runs without bounds.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { test } from 'node:test';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import { VARIABLES, variableValue } from '../dashboards/catalogue/variables.js';
import { ALL, expand, type TimeRange } from '../dashboards/expand.js';
import type {
  AnnotationsAnswer,
  CatalogueAnswer,
  ExampleAnswer,
  PanelAnswer,
  SpanAnswer,
  VariablesAnswer,
} from '../dashboards/page/wire.js';
import { InputError } from '../src/errors.js';
import { csv } from '../src/serve/csv.js';
import { PanelRows, QUERY_LIMITS } from '../src/serve/panel-rows.js';
import { bind } from '../src/serve/panel-statement.js';
import { QueryGate } from '../src/serve/query-gate.js';
import { fillHostile, HOSTILE, PageStores, servePage, T0_MS } from './support/page-stores.js';

const NEVER = new AbortController().signal;
const PANELS = DASHBOARDS.flatMap(({ panels }) => panels);
const RANGE = { from: T0_MS, to: T0_MS + 120_000 };
const TIMES = `from=${RANGE.from}&to=${RANGE.to}`;

async function ask<T>(url: string): Promise<T> {
  const response = await fetch(url);
  const text = await response.text();
  assert.equal(response.status, 200, `${url}: ${text}`);
  return JSON.parse(text) as T;
}

async function refusal(url: string, init: RequestInit = {}): Promise<[number, string]> {
  const response = await fetch(url, init);
  return [response.status, ((await response.json()) as { error: string }).error];
}

test('the API', async (t) => {
  const stores = new PageStores(t);
  const store = await stores.open('hostile');
  await fillHostile(store);
  const { url, errors } = await servePage(t, store, { pollMs: 50 });

  await t.test('gives the catalogue without its SQL', async () => {
    const answer = await ask<CatalogueAnswer>(`${url}/api/dashboards`);
    assert.equal(answer.version, '1.2.3');
    assert.deepEqual(
      answer.dashboards.map(({ name, id }) => [`limitlens-${name}`, id]),
      DASHBOARDS.map(({ id }) => [id, id]),
    );
    const told = answer.dashboards.flatMap(({ panels }) => panels.map(({ id }) => id));
    assert.deepEqual(
      told,
      PANELS.map(({ id }) => id),
    );
    assert.ok(!JSON.stringify(answer).includes('SELECT'));
  });

  await t.test('gives the rows that Grafana would get, whatever is chosen', async () => {
    const two = [HOSTILE[1], HOSTILE[6]];
    const choices = [{}, { zone: two, server: two, location: two, key: [HOSTILE[2]] }];
    for (const choice of choices) {
      const values = VARIABLES.map(({ name, isMulti }) => {
        const chosen: readonly string[] = (choice as Record<string, readonly string[]>)[name] ?? [];
        const encoded = chosen.map(variableValue);
        const all = encoded.length === 0 ? ALL : encoded;
        return [name, isMulti ? all : (encoded[0] ?? '')] as const;
      });
      const query = values.flatMap(([name, list]) =>
        list === ALL || list === ''
          ? []
          : [list].flat().map((value): [string, string] => [name, value]),
      );
      for (const panel of PANELS) {
        const parameters = new URLSearchParams(query).toString();
        const address = `${url}/api/panel/${panel.id}?${TIMES}&${parameters}`;
        const answer = await ask<PanelAnswer>(address);
        const range: TimeRange = {
          fromMs: RANGE.from,
          toMs: RANGE.to - 1,
          intervalMs: answer.stepMs,
        };
        const sql = expand(panel.sql, range, Object.fromEntries(values));
        const rows = await store.query<Record<string, unknown>>(sql);
        const names = answer.columns.map(({ name }) => name);
        const expected = rows.map((row) => names.map((name) => row[name]));
        const found = answer.rows.map((row) =>
          row.map((cell, at) => {
            const isTime = answer.columns[at]!.type === 'time' && cell !== null;
            const text = isTime ? new Date(Number(cell)).toISOString().slice(0, -1) : '';
            const original = String(expected[answer.rows.indexOf(row)]?.[at]);
            return isTime ? text.replace('T', ' ').slice(0, original.length) : cell;
          }),
        );
        // The age of the newest line goes on.
        if (panel.id !== 'health-totals') assert.deepEqual(found, expected, address);
        assert.equal(answer.isCut, false);
      }
    }
  });

  await t.test('never makes a value part of a statement', () => {
    const range = { fromMs: RANGE.from, toMs: RANGE.to, intervalMs: 20_000 };
    const choiceOf = (values: readonly string[]) =>
      Object.fromEntries(VARIABLES.map(({ name }) => [name, values]));
    for (const { sql: template, id } of PANELS) {
      const { sql } = bind(template, range, choiceOf(['ordinary']));
      assert.doesNotMatch(sql, /ordinary|\$/, id);
      for (const value of HOSTILE) {
        const bound = bind(template, range, choiceOf([value, 'another']));
        assert.equal(bound.sql, sql, id);
        for (const [name, param] of Object.entries(bound.params)) {
          assert.ok(sql.includes(`{${name}:String}`), id);
          assert.match(param, /^[\w%.~-]*$/, id);
        }
      }
    }
  });

  await t.test('offers each name, encoded, for its variable', async () => {
    const { options } = await ask<VariablesAnswer>(`${url}/api/variables?${TIMES}`);
    const zones = options['zone']!.toSorted((a, b) => a.text.localeCompare(b.text));
    assert.deepEqual(
      zones,
      HOSTILE.map((text) => ({ value: variableValue(text), text })).toSorted((a, b) =>
        a.text.localeCompare(b.text),
      ),
    );
    const one = `${url}/api/variables?${TIMES}&name=location&server=${encodeURIComponent(variableValue(HOSTILE[0]))}`;
    assert.deepEqual(await ask<VariablesAnswer>(one), {
      options: { location: [{ value: variableValue(HOSTILE[0]), text: HOSTILE[0] }] },
    });
  });

  await t.test('tells which time there is, and what is marked in it', async () => {
    const { span } = await ask<SpanAnswer>(`${url}/api/span`);
    assert.deepEqual(span, { fromMs: T0_MS, toMs: T0_MS + 70_000 });
    const { marks } = await ask<AnnotationsAnswer>(`${url}/api/annotations?${TIMES}`);
    assert.equal(marks.length, 2 * HOSTILE.length);
    assert.deepEqual(marks[0], {
      ...{ id: 'marks', title: 'Reloads and restarts', fromMs: T0_MS + 1000, toMs: T0_MS + 1000 },
      ...{ text: `reload: ${HOSTILE[0]}`, tags: 'edge' },
    });
  });

  await t.test('takes the row in which the time begins, and not the one at its end', async () => {
    const at = async (from: number, to: number): Promise<unknown> => {
      const path = `/api/panel/keys-one-outcomes?key=%5C&from=${from}&to=${to}`;
      return (await ask<PanelAnswer>(url + path)).rows.map(([time]) => Number(time) - T0_MS);
    };
    assert.deepEqual(await at(T0_MS + 30_000, T0_MS + 60_000), [0]);
    assert.deepEqual(await at(T0_MS + 30_000, T0_MS + 60_001), [0, 60_000]);
    assert.deepEqual(await at(T0_MS + 119_000, T0_MS + 120_000), [60_000]);
  });

  await t.test('makes steps that fit the width, and never shorter than the rows', async () => {
    const step = async (query: string): Promise<number> =>
      (await ask<PanelAnswer>(`${url}/api/panel/overview-decisions?${query}`)).stepMs;
    assert.equal(await step(TIMES), 20_000);
    assert.equal(await step(`from=${T0_MS}&to=${T0_MS + 86_400_000}&points=100`), 900_000);
    assert.equal(await step(`from=${T0_MS - 30 * 86_400_000}&to=${T0_MS}&points=1000`), 3_600_000);
    assert.equal(await step('from=now-15m&to=now'), 20_000);
  });

  await t.test('explains an example', async () => {
    const [name] = HOSTILE;
    const query = new URLSearchParams({
      ...{ instance: 'edge', server: name, location: name, zone: name, key: name },
      path: `/${name}`,
      time: String(T0_MS + 1000),
    });
    const { example, explanation } = await ask<ExampleAnswer>(`${url}/api/example?${query}`);
    assert.equal(example.key, name);
    assert.equal(example.excessMilli, 20_500);
    assert.match(explanation, /^limit_req rejected a request: excess 20\.500 in zone/);
    assert.match(explanation, /burst +20, implied; the configuration agrees/);
    assert.match(explanation, /At 10r\/s one request fits again after .* = 50 ms/);
    assert.match(explanation, /c:7: limit_req .* burst=20 delay=5/);
    assert.deepEqual(await refusal(`${url}/api/example?time=5`), [404, 'no such example is kept']);
  });

  await t.test('lists examples of one key, or of all', async () => {
    const all = await ask<PanelAnswer>(`${url}/api/examples?${TIMES}`);
    assert.equal(all.rows.length, HOSTILE.length);
    const one = `${url}/api/examples?${TIMES}&key=${encodeURIComponent(variableValue(HOSTILE[2]))}`;
    const { rows, columns } = await ask<PanelAnswer>(one);
    const keyAt = columns.findIndex(({ name }) => name === 'key');
    assert.deepEqual(
      rows.map((row) => row[keyAt]),
      [HOSTILE[2]],
    );
  });

  await t.test('gives files to keep', async () => {
    const path = `${url}/api/panel/keys-top-by-rejections?${TIMES}&download=`;
    const table = await fetch(`${path}csv`);
    assert.equal(table.headers.get('content-type'), 'text/csv; charset=utf-8');
    assert.equal(
      table.headers.get('content-disposition'),
      'attachment; filename="keys-top-by-rejections.csv"',
    );
    const text = await table.text();
    const head = 'key,zone,instance,rejections,zone exhausted,delays,let through';
    assert.ok(text.startsWith(`${head},"rejections, dry run",largest excess\r\n`), text);
    assert.ok(text.includes('"\'=HYPERLINK(""http://evil.example"")"'), text);
    const objects = await ask<Record<string, unknown>[]>(`${path}json`);
    assert.equal(objects.length, HOSTILE.length);
    assert.deepEqual(new Set(objects.map(({ key }) => key)), new Set<string>(HOSTILE));
    assert.ok(objects.every((row) => !('key_value' in row)));
  });

  await t.test('refuses what it does not understand, and says what it expects', async () => {
    const panel = `${url}/api/panel/overview-totals`;
    const cases: [string, number, RegExp][] = [
      [`${panel}?zones=x`, 400, /among from, to, points, instance/],
      [`${panel}?from=yesterday`, 400, /epoch milliseconds, now, now-15m/],
      [`${panel}?from=now&to=now-1h`, 400, /earlier/],
      [`${panel}?points=0`, 400, /between 1 and 1000/],
      [`${panel}?points=1e9`, 400, /between 1 and 1000/],
      [`${panel}?download=xml`, 400, /download=csv/],
      [`${panel}?${'zone=a&'.repeat(201)}`, 400, /at most 200/],
      [`${panel}?key=a&key=b`, 400, /at most 1 /],
      [`${url}/api/panel/nothing`, 404, /no panel/],
      [`${url}/api/panel/__proto__`, 404, /no panel/],
      [`${url}/api/example?time=x`, 400, /epoch milliseconds/],
    ];
    for (const [address, status, words] of cases) {
      const [found, error] = await refusal(address);
      assert.equal(found, status, address);
      assert.match(error, words, address);
    }
    assert.equal((await refusal(panel, { method: 'POST' }))[0], 405);
  });

  await t.test('answers no page of another site', async () => {
    const request = get(`${url}/api/span`, { headers: { 'Sec-Fetch-Site': 'cross-site' } });
    const [response] = (await once(request, 'response')) as [
      { statusCode: number; resume(): void },
    ];
    response.resume();
    assert.equal(response.statusCode, 403);
    const renamed = get(`${url}/api/span`, { headers: { Host: 'evil.example' } });
    const [other] = (await once(renamed, 'response')) as [{ statusCode: number; resume(): void }];
    other.resume();
    assert.equal(other.statusCode, 421);
  });

  await t.test('tells of every commit, to whoever listens', async () => {
    const stop = new AbortController();
    const response = await fetch(`${url}/api/live`, { signal: stop.signal });
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const until = async (words: string): Promise<void> => {
      while (!text.includes(words)) {
        const { value, done } = await reader.read();
        assert.ok(!done, text);
        text += value;
      }
    };
    await until('event: version\ndata: "0"\n\n');
    const intent = { instance: 'edge', sequence: 1, ranges: [], startedBy: 'test' };
    await store.begin(intent);
    const state = { state: '{}', sources: [], logTimeMs: 0 };
    await store.commit(intent, { ...state, instance: 'edge', sequence: 1 });
    await until('event: version\ndata: "1"\n\n');
    stop.abort();
  });

  await t.test('gives no more rows than are allowed, and says so', async (t) => {
    const few = await servePage(t, store, { limits: { rows: 3 } });
    const path = `/api/panel/overview-near-limit?${TIMES}`;
    const whole = await ask<PanelAnswer>(url + path);
    const cut = await ask<PanelAnswer>(few.url + path);
    assert.deepEqual([whole.isCut, cut.isCut], [false, true]);
    assert.deepEqual(cut.rows, whole.rows.slice(0, 3));
  });

  await t.test('ends a statement that takes too long', async () => {
    const rows = new PanelRows(store, { ...QUERY_LIMITS, seconds: 1 });
    const slow = 'SELECT sum(sleepEachRow(1)) AS n FROM numbers(20) SETTINGS max_block_size = 1';
    await assert.rejects(
      rows.objects({ sql: slow, params: {} }, NEVER),
      (error) => error instanceof InputError && /took longer than it may/.test(error.message),
    );
  });

  assert.deepEqual(errors, []);
});

test('a gate lets so many run, so many wait, and none who has gone', async () => {
  const gate = new QueryGate({ running: 2, waiting: 2 });
  const ends: (() => void)[] = [];
  let running = 0;
  let most = 0;
  const action = async (): Promise<string> => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => ends.push(resolve));
    running--;
    return 'done';
  };
  const gone = new AbortController();
  const first = [gate.run(NEVER, action), gate.run(NEVER, action)];
  const third = gate.run(gone.signal, action);
  const fourth = gate.run(NEVER, action);
  await assert.rejects(gate.run(NEVER, action), { name: 'HttpError', status: 503 });
  gone.abort();
  ends.shift()!();
  await assert.rejects(third, { status: 499 });
  // The place of the one that has gone is the fourth's.
  while (ends.length < 2) await new Promise(setImmediate);
  for (const end of ends.splice(0)) end();
  assert.deepEqual(await Promise.all([...first, fourth]), ['done', 'done', 'done']);
  assert.equal(most, 2);
  const later = gate.run(NEVER, action);
  ends.shift()!();
  assert.equal(await later, 'done');
});

test('CSV quotes what it must, and hands no formula to a spreadsheet', () => {
  const columns = [
    { name: 'key', type: 'text' },
    { name: 'n, of', type: 'number' },
    { name: 'at', type: 'time' },
  ] as const;
  const rows = [
    ['plain', -1.5, 0],
    ['a "b",\r\nc', 2, null],
    ['@SUM(A1)', null, 1_794_000_000_123],
  ];
  assert.equal(
    csv(columns, rows),
    'key,"n, of",at\r\n' +
      'plain,-1.5,1970-01-01T00:00:00.000Z\r\n' +
      '"a ""b"",\r\nc",2,\r\n' +
      "'@SUM(A1),,2026-11-06T21:20:00.123Z\r\n",
  );
  assert.equal(csv(columns, [['a', 1, 0]], ['key', 'at']), '"n, of"\r\n1\r\n');
});
