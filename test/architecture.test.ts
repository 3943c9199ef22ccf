/**
 * The direction of imports: parsers know nothing, commands know everything.
 *
 * A file in no layer fails, so a new folder has to be given its place here first.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkImports, readImports, type Rules } from './support/import-rules.js';

const RULES: Rules = {
  layers: [
    { path: 'parsers', imports: [], node: [] },
    { path: 'src/errors.ts', imports: [], node: [] },
    { path: 'src/version.ts', imports: [], node: 'any' },
    { path: 'src/limit-req', imports: [], node: [] },
    // Its hash is seeded, or clients could choose keys that collide.
    { path: 'src/keys', imports: ['parsers', 'src/errors.ts'], node: ['node:crypto'] },
    { path: 'src/input', imports: ['parsers', 'src/errors.ts'], node: 'any' },
    { path: 'src/attribution', imports: [], types: ['src/limit-req'], node: [] },
    {
      path: 'src/replay',
      imports: ['src/limit-req', 'src/keys', 'src/attribution', 'parsers', 'src/errors.ts'],
      node: [],
    },
    {
      path: 'src/aggregate',
      imports: ['src/replay', 'src/keys', 'src/attribution', 'src/errors.ts'],
      types: ['src/limit-req', 'parsers'],
      node: [],
    },
    { path: 'src/store', imports: ['src/errors.ts'], types: ['src/aggregate'], node: 'any' },
    {
      path: 'src/pipeline',
      imports: [
        'parsers',
        'src/errors.ts',
        'src/keys',
        'src/input',
        'src/replay',
        'src/aggregate',
        'src/store',
      ],
      node: 'any',
    },
    {
      path: 'src/check',
      imports: ['parsers', 'src/errors.ts', 'src/limit-req', 'src/keys'],
      node: [],
    },
    {
      path: 'src/report',
      imports: [
        'parsers',
        'src/errors.ts',
        'src/limit-req',
        'src/attribution',
        'src/aggregate',
        'src/store',
      ],
      node: 'any',
    },
    {
      path: 'src/analysis',
      imports: [
        'parsers',
        'src/errors.ts',
        'src/limit-req',
        'src/keys',
        'src/attribution',
        'src/replay',
        'src/aggregate',
        'src/store',
        'src/check',
        'src/report',
      ],
      node: [],
    },
    { path: 'src/http', imports: ['src/errors.ts'], node: 'any' },
    {
      path: 'src/store-http',
      imports: ['src/errors.ts', 'src/http', 'src/store'],
      node: 'any',
    },
    { path: 'src/top', imports: ['src/errors.ts', 'src/store'], node: ['node:tty'] },
    {
      path: 'src/metrics',
      imports: [
        'src/errors.ts',
        'src/attribution',
        'src/aggregate',
        'src/version.ts',
        'dashboards',
      ],
      node: 'any',
    },
    {
      path: 'src/daemon',
      imports: [
        'parsers',
        'src/errors.ts',
        'src/input',
        'src/replay',
        'src/aggregate',
        'src/store',
        'src/pipeline',
      ],
      node: 'any',
    },
    { path: 'src/config', imports: ['src/errors.ts'], node: ['node:fs', 'node:path'] },
    // One definition of each condition, and what the daemon makes of it.
    {
      path: 'src/alerting',
      imports: ['src/errors.ts', 'alerts'],
      types: ['src/store', 'dashboards'],
      node: 'any',
    },
    {
      path: 'src/serve',
      imports: ['parsers', 'src/errors.ts', 'src/http', 'src/report', 'src/store', 'dashboards'],
      types: ['dashboards/page'],
      node: 'any',
    },
    {
      path: 'src/commands',
      imports: [
        'alerts',
        'src/alerting',
        'parsers',
        'src/errors.ts',
        'src/config',
        'src/limit-req',
        'src/keys',
        'src/input',
        'src/replay',
        'src/attribution',
        'src/aggregate',
        'src/store',
        'src/pipeline',
        'src/check',
        'src/report',
        'src/analysis',
        'src/top',
        'src/daemon',
        'src/http',
        'src/store-http',
        'src/serve',
        'src/metrics',
        'src/version.ts',
      ],
      node: 'any',
    },
    {
      path: 'src/cli',
      imports: ['src/commands', 'src/errors.ts', 'src/version.ts'],
      node: 'any',
    },
    { path: 'src/cli.ts', imports: ['src/cli'], node: [] },
    { path: 'src/make-executable.ts', imports: [], node: 'any' },
    // Alerts and panels ask for metrics and rows by name; their generators write files.
    { path: 'alerts', imports: ['dashboards'], types: ['src/aggregate'], node: 'any' },
    // In the browser: what it shares with the server are types and the words of the catalogue.
    { path: 'dashboards/page', imports: [], types: ['dashboards'], node: [] },
    { path: 'dashboards', imports: [], types: ['src/store'], node: 'any' },
  ],
  doors: {
    luxon: 'parsers/time.ts',
    split2: 'src/input',
    '@clickhouse/client': 'src/store',
    chdb: 'src/store',
    commander: 'src/cli',
    yaml: 'src/config/read-config.ts',
    pino: 'src/daemon/json-log.ts',
    ajv: 'src/config/read-config.ts',
    'prom-client': 'src/metrics/tail-metrics.ts',
    '@grafana/grafana-foundation-sdk': 'dashboards',
    uplot: 'dashboards/page/chart-frame.ts',
  },
  // One program's commands are more than one file holds.
  wideDoors: ['commander'],
};

function readSources(folders: readonly string[]): ReadonlyMap<string, string> {
  const sources = new Map<string, string>();
  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      const path = `${folder}/${name}`;
      if (/\.[cm]?[jt]sx?$/.test(name)) sources.set(path, readFileSync(join(path), 'utf8'));
    }
  }
  return sources;
}

test('every import of src, parsers, alerts and dashboards goes the way the table allows', () => {
  const sources = readSources(['src', 'parsers', 'alerts', 'dashboards']);
  assert.ok(sources.size > 0);
  assert.deepEqual(checkImports(sources, RULES), []);
});

/** What the checker says of one file with this text. */
function verdict(path: string, text: string): readonly string[] {
  return checkImports(new Map([[path, text]]), RULES);
}

const refused = [
  [
    'src/limit-req/a.ts',
    "import {\n  readFileSync,\n} from 'node:fs';",
    'src/limit-req/a.ts:1: imports node:fs, which src/limit-req may not',
  ],
  [
    'parsers/a.ts',
    "\nexport * from '../src/errors.js';",
    'parsers/a.ts:2: parsers may not import from src/errors.ts',
  ],
  [
    'parsers/a.ts',
    "export type { InputError } from '../src/errors.js';",
    'parsers/a.ts:1: parsers may not import from src/errors.ts',
  ],
  [
    'src/input/a.ts',
    "const x = await import('../store/b.js');",
    'src/input/a.ts:1: src/input may not import from src/store',
  ],
  [
    'src/input/a.ts',
    'const x = await import(name);',
    'src/input/a.ts:1: imports something that only running it would tell',
  ],
  [
    'src/input/a.ts',
    'const x = await import(`../store/${name}.js`);',
    'src/input/a.ts:1: imports something that only running it would tell',
  ],
  [
    'src/keys/a.ts',
    "let x: import('../replay/b.js').B;",
    'src/keys/a.ts:1: src/keys may not import from src/replay',
  ],
  [
    'src/keys/a.ts',
    "import b = require('../replay/b.js');",
    'src/keys/a.ts:1: src/keys may not import from src/replay',
  ],
  [
    'src/replay/a.ts',
    "import 'left-pad';",
    'src/replay/a.ts:1: imports left-pad, a package that has no door',
  ],
  [
    'src/replay/a.ts',
    "import 'constructor';",
    'src/replay/a.ts:1: imports constructor, a package that has no door',
  ],
  ['src/replay/a.ts', "import 'fs';", 'src/replay/a.ts:1: imports fs, a package that has no door'],
  [
    'src/report/a.ts',
    "import { x } from 'chdb/connection';",
    'src/report/a.ts:1: imports chdb/connection, whose door is src/store',
  ],
  [
    'parsers/time-zone.ts',
    "import { DateTime } from 'luxon';",
    'parsers/time-zone.ts:1: imports luxon, whose door is parsers/time.ts',
  ],
  [
    'src/attribution/a.ts',
    "import { account } from '../limit-req/zone.js';",
    'src/attribution/a.ts:1: imports more than types from src/limit-req',
  ],
  [
    'src/attribution/a.ts',
    "import { type Limit, account } from '../limit-req/zone.js';",
    'src/attribution/a.ts:1: imports more than types from src/limit-req',
  ],
  [
    'src/store/a.ts',
    "import '../aggregate/a.js';",
    'src/store/a.ts:1: imports more than types from src/aggregate',
  ],
  ['src/common/a.ts', '', 'src/common/a.ts: is in no layer of the table'],
  ['src/limit-requests/a.ts', '', 'src/limit-requests/a.ts: is in no layer of the table'],
  [
    'src/report/a.ts',
    "import '../../test/support/x.js';",
    'src/report/a.ts:1: imports test/support/x.ts, which is in no layer of the table',
  ],
] as const;
for (const [path, text, complaint] of refused) {
  test(`refused in ${path}: ${JSON.stringify(text)}`, () => {
    assert.deepEqual(verdict(path, text), [complaint]);
  });
}

const allowed = [
  ['src/limit-req/a.ts', "import { b } from './b.js';\nexport * from './deep/c.js';"],
  ['src/input/a.ts', "import split2 from 'split2';\nimport { open } from 'node:fs/promises';"],
  ['src/store/a.ts', "const { c } = await import('chdb/connection');"],
  ['src/store/a.ts', "import type { Row } from '../aggregate/row.js';"],
  ['src/attribution/a.ts', "import { type A, type B } from '../limit-req/zone.js';"],
  ['parsers/a.ts', "// import 'node:fs';\nconst text = \"import 'node:fs'\";"],
] as const;
for (const [path, text] of allowed) {
  test(`allowed in ${path}: ${JSON.stringify(text)}`, () => {
    assert.deepEqual(verdict(path, text), []);
  });
}

test('a package that two files import has several doors, though both are in the right folder', () => {
  const sources = new Map([
    ['src/input/a.ts', "import split2 from 'split2';"],
    ['src/input/b.ts', "import split2 from 'split2';"],
  ]);
  assert.deepEqual(checkImports(sources, RULES), [
    'split2: has several doors: src/input/a.ts, src/input/b.ts',
  ]);
});

test('lines of imports count from 1 and comments are skipped over', () => {
  const text = "/* import 'x' */\n\nimport 'a';\nexport { b } from 'b';\n";
  assert.deepEqual(readImports('a.ts', text), [
    { specifier: 'a', isTypeOnly: false, line: 3 },
    { specifier: 'b', isTypeOnly: false, line: 4 },
  ]);
});
