/**
 * Stores for tests of the page and its API: databases of one folder, since the engine has one folder
 * per process; and a server over one of them.
 */
import { join } from 'node:path';
import { importCommand } from '../../src/commands/import.js';
import { HttpServer } from '../../src/http/server.js';
import type { ApiOptions } from '../../src/serve/api.js';
import { pageRoutes } from '../../src/serve/page-routes.js';
import { openStore, type Store } from '../../src/store/store.js';
import { columnsOf, type TableName } from '../../src/store/tables.js';
import { LOG_OPTIONS, outputOf } from './analysed.js';
import { makeTempDir, type Cleanup } from './temp-dir.js';

/** On a minute. */
export const T0_S = 1_794_000_000;
export const T0_MS = T0_S * 1000;

/** What clients can send, or somebody may write into a configuration. */
export const HOSTILE = [
  '<img src=x onerror="document.title=1">',
  '"><script>document.title=1</script>',
  "' OR 1=1 --",
  '\\',
  '${zone:percentencode} $__timeFilter(bucket)',
  '{zone:String}',
  'a,b{c}%27',
  '=HYPERLINK("http://evil.example")',
  'turned\u202earound\u0000\u001b[31m',
  `https://long.example/${'nowhere-to-break'.repeat(60)}`,
  '',
] as const;

export class PageStores {
  readonly #folder: string;
  readonly #t: Cleanup;

  constructor(t: Cleanup) {
    this.#t = t;
    this.#folder = join(makeTempDir(t), 'store');
  }

  /** Opens one of its databases, made where it is not there. */
  async open(database: string): Promise<Store> {
    const store = await openStore({ path: this.#folder, database, createIfMissing: true });
    this.#t.after(() => store.close());
    return store;
  }

  /** Imports logs of a directory, with its nginx.conf. */
  async import(
    database: string,
    directory: string,
    files: { readonly access: string; readonly errors?: string; readonly instance?: string },
  ): Promise<void> {
    const { access, errors, instance = 'default' } = files;
    const options = {
      ...LOG_OPTIONS,
      ...{ conf: [join(directory, 'nginx.conf')], instance, database, store: this.#folder },
      ...{ errorLog: errors === undefined ? [] : [errors], threads: 1, strict: false },
    };
    await outputOf((output) => importCommand([access], { ...options, format: 'json' }, output));
  }
}

/** Serves the page over a store. @returns its address without a slash, and what went wrong in it */
export async function servePage(
  t: Cleanup,
  store: Store,
  options: Partial<ApiOptions> = {},
): Promise<{ url: string; errors: unknown[] }> {
  const errors: unknown[] = [];
  const server = await HttpServer.start({
    listen: '127.0.0.1:0',
    routes: pageRoutes(store, { version: '1.2.3', ...options }),
    onError: (_, error) => errors.push(error),
    env: {},
  });
  t.after(() => server.close());
  return { url: server.url, errors };
}

type Rows = Partial<Record<TableName, unknown[][]>>;

async function insert(store: Store, tables: Rows): Promise<void> {
  for (const [name, list] of Object.entries(tables)) {
    const table = name as TableName;
    const columns = columnsOf(table);
    // Columns that came later, and may be null, stand at the end.
    const rows = list.map((row) => [
      ...row,
      ...new Array<null>(columns.length - row.length).fill(null),
    ]);
    await store.insertBlock({ table, columns, rows }, `${table}/test`);
  }
}

const RULES = JSON.stringify([
  { server: 's', location: '/', burst: 20, delay: 5, status: 503, dryRun: false, where: 'c:7' },
]);

/** Two minutes of everything under each hostile name: server, location, zone, key, path, messages. */
export async function fillHostile(store: Store): Promise<void> {
  const rows = HOSTILE.flatMap((name, n) => rowsOf(['edge', name, name, name, name], n));
  await insert(store, merge(rows));
}

/** The same for as many zones, `zone000` and so on, with one key each. */
export async function fillZones(store: Store, count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => {
    const zone = `zone${String(n).padStart(3, '0')}`;
    return rowsOf(['edge', 's', '/', zone, `key${n}`], n);
  });
  await insert(store, merge(rows.flat()));
}

function merge(parts: readonly Rows[]): Rows {
  const all: Record<string, unknown[][]> = {};
  for (const part of parts) {
    for (const [table, rows] of Object.entries(part)) (all[table] ??= []).push(...rows);
  }
  return all;
}

type Names = readonly [
  instance: string,
  server: string,
  location: string,
  zone: string,
  key: string,
];

function rowsOf([instance, server, location, zone, key]: Names, n: number): Rows[] {
  const atMs = T0_MS + 1000 + n;
  const minutes = [T0_S, T0_S + 60].map((atS): Rows => {
    const limit = [instance, zone, 'limit_req', server, location, atS];
    return {
      zone_outcomes: [
        [...limit, 'passed', 100 + n, 3, 5000, 900, 0],
        [...limit, 'rejected', n + 1, 0, 21_000, 21_000, 0],
        [...limit, 'rejected_dry_run', 1, 0, 21_000, 21_000, 0],
        [...limit, 'delayed_dry_run', 1, 0, 6000, 6000, 0],
      ],
      responses: [
        [instance, server, location, atS, 503, 'limit_req', 'REJECTED', n + 1],
        [instance, server, location, atS, 200, '', 'PASSED', 100],
      ],
      excess_histogram: [[instance, zone, atS, n % 22, 5]],
      key_minutes: [
        [
          ...[instance, zone, key, atS, 1000 + n, 1, n + 1, 0, 2, 0],
          ...[1000 * n, 900 * n, 1000 * n + 500],
        ],
      ],
      zone_state: [[instance, zone, atS, 100 + n, 1000, 3, n % 3, 1, n % 2, 9, 40 + n, 40 + n]],
      agreement: [
        [instance, zone, atS, 'agree', 90],
        [instance, zone, atS, 'explained', 99],
        [instance, zone, atS, 'order', 10],
      ],
      line_counts: [[instance, key, atS, 'unparsable', 'not the format', 2]],
    };
  });
  return [
    ...minutes,
    {
      unparsable_samples: [[instance, 'f', n, 'not the format', key]],
      examples: [
        [instance, server, location, 503, 'limit_req', atMs, 'GET', `/${key}`, zone, key, 20_500],
      ],
      findings: [[instance, 'burst_differs', key, key, atMs, atMs + 9000, '{}']],
      marks: [[instance, atMs, 'reload', key]],
      limits: [[instance, zone, T0_MS - 5, '$uri', 32_768, 10_000, 191, RULES]],
    },
  ];
}
