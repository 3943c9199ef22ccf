/**
 * Opening what is no store, is not ours, is not there or does not answer: the words and exit codes.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EXIT, InputError, type ExitCode } from '../src/errors.js';
import { parseServerUrl } from '../src/store/server.js';
import { openStore, type StoreOptions } from '../src/store/store.js';
import { startFakeServer } from './support/clickhouse-http.js';
import { STORE_KINDS } from './support/store-kinds.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

async function refuses(
  options: Partial<StoreOptions>,
  exitCode: ExitCode,
  message: RegExp,
): Promise<InputError> {
  let found: unknown;
  try {
    const store = await openStore({ createIfMissing: true, ...options });
    await store.close();
  } catch (error) {
    found = error;
  }
  assert.ok(found instanceof InputError, String(found));
  assert.equal(found.exitCode, exitCode, found.message);
  assert.match(found.message, message);
  assert.match(found.message, /\n {2}\S/, 'says what to do');
  return found;
}

test('a file is no store', async (t) => {
  const path = join(makeTempDir(t), 'access.log');
  writeFileSync(path, 'a line\n');
  await refuses({ path }, EXIT.noInput, /access\.log: expected a folder, found a file/);
  await refuses({ path: join(path, 'below') }, EXIT.noInput, /expected a folder, found a file/);
});

test('a folder of something else is no store, and is left as it is', async (t) => {
  const path = makeTempDir(t);
  writeFileSync(join(path, 'notes.txt'), 'mine');
  await refuses({ path }, EXIT.noInput, /found a folder without limitlens-store\.json/);
  assert.deepEqual(readdirSync(path), ['notes.txt']);
});

test('an empty folder becomes a store when wanted, and not otherwise', async (t) => {
  const path = makeTempDir(t);
  await refuses({ path, createIfMissing: false }, EXIT.noInput, /found an empty folder/);
  assert.deepEqual(readdirSync(path), []);
  await (await openStore({ path, createIfMissing: true })).close();
  await (await openStore({ path, createIfMissing: false })).close();
});

test('a store may lie in a folder beside others: they are named, and it can be one as well', async (t) => {
  const path = makeTempDir(t);
  const inner = join(path, 'demo');
  await (await openStore({ path: inner, createIfMissing: true })).close();
  const refusal = await refuses({ path, createIfMissing: false }, EXIT.noInput, /other stores/);
  assert.ok(refusal.message.includes(`--store ${inner}.`), refusal.message);
  await (await openStore({ path, createIfMissing: true })).close();
  assert.deepEqual(readdirSync(path).sort(), ['chdb', 'demo', 'limitlens-store.json']);
  await (await openStore({ path: inner, createIfMissing: false })).close();
});

test('a missing folder is made when wanted, with those above it, and not otherwise', async (t) => {
  const path = join(makeTempDir(t), 'a', 'b');
  await refuses({ path, createIfMissing: false }, EXIT.noInput, /expected a limitlens store/);
  assert.equal(existsSync(path), false);
  await (await openStore({ path, createIfMissing: true })).close();
  assert.equal(readFileSync(join(path, 'limitlens-store.json'), 'utf8'), '{"layout":1}\n');
});

test('a store half made by a crash is made whole', async (t) => {
  const path = makeTempDir(t);
  writeFileSync(join(path, 'limitlens-store.json.tmp'), '{"lay');
  await (await openStore({ path, createIfMissing: true })).close();
  await (await openStore({ path, createIfMissing: false })).close();
});

test('a folder of a newer layout, or with a broken marker', async (t) => {
  const path = makeTempDir(t);
  writeFileSync(join(path, 'limitlens-store.json'), '{"layout":2}\n');
  await refuses({ path }, EXIT.configuration, /expected layout 1, found 2/);
  writeFileSync(join(path, 'limitlens-store.json'), '{"lay');
  await refuses({ path }, EXIT.configuration, /expected layout 1, found "unreadable"/);
});

interface Ran {
  readonly exitCode: number;
  readonly stderr: string;
}

/** Opens a store in a process of its own, with other rights or other packages. */
async function openInChild(
  path: string,
  extra: { uid?: number; nodeArgs?: string[] },
): Promise<Ran> {
  const child = fileURLToPath(new URL('./support/store-child.js', import.meta.url));
  const { uid, nodeArgs = [] } = extra;
  const args = [...nodeArgs, child, 'import', path, '0'];
  return new Promise((resolve) => {
    execFile(process.execPath, args, uid === undefined ? {} : { uid }, (error, _, stderr) => {
      resolve({ exitCode: error === null ? 0 : Number(error.code), stderr });
    });
  });
}

test('no permission to write', async (t) => {
  const parent = makeTempDir(t);
  const path = join(parent, 'store');
  mkdirSync(path);
  chmodSync(parent, 0o755);
  chmodSync(path, 0o555);
  // root may write anywhere, so that it has to become somebody else.
  const NOBODY = 65_534;
  const ran = await openInChild(path, process.getuid?.() === 0 ? { uid: NOBODY } : {});
  assert.notEqual(ran.exitCode, 0);
  assert.match(ran.stderr, /InputError: .*store: expected a folder to write to/);
  assert.deepEqual(readdirSync(path), []);
});

test('chdb is not installed', async (t) => {
  const path = join(makeTempDir(t), 'store');
  const hook = `export const resolve = (name, context, next) => {
    if (name.startsWith('chdb')) throw new Error('Cannot find package chdb');
    return next(name, context);
  };`;
  const encode = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;
  const register = `import { register } from 'node:module'; register(${JSON.stringify(encode(hook))});`;
  const ran = await openInChild(path, { nodeArgs: ['--import', encode(register)] });
  assert.notEqual(ran.exitCode, 0);
  assert.match(ran.stderr, /InputError: expected the package chdb/);
  assert.match(ran.stderr, /Run `npm install chdb`/);
  assert.match(ran.stderr, new RegExp(`exitCode: ${EXIT.configuration}`));
});

test('options that cannot be', async () => {
  await assert.rejects(openStore({ createIfMissing: true }), /expected --store PATH/);
  const clustered = openStore({ path: '/nowhere', cluster: 'main', createIfMissing: true });
  await assert.rejects(clustered, /--cluster: expected --clickhouse URL/);
  for (const url of [
    'localhost:8123',
    'ftp://host',
    'http://',
    '8123',
    'http://h/?a=b',
    'http://%zz@h',
  ]) {
    await assert.rejects(openStore({ url, createIfMissing: true }), (error) => {
      assert.ok(error instanceof InputError);
      assert.equal(error.exitCode, EXIT.usage);
      return /expected a URL like/.test(error.message);
    });
  }
});

const DEFAULTS = { username: 'default', password: '', database: undefined };
const urls: readonly [string, object][] = [
  ['http://ch', { url: 'http://ch:8123' }],
  ['https://ch/', { url: 'https://ch:8443' }],
  ['https://ch:443', { url: 'https://ch:443' }],
  ['http://ch:80/logs', { url: 'http://ch:80', database: 'logs' }],
  ['http://[::1]:9123/logs/', { url: 'http://[::1]:9123', database: 'logs' }],
  ['http://me@ch', { url: 'http://ch:8123', username: 'me' }],
  ['http://me:p%40%3A1@ch', { url: 'http://ch:8123', username: 'me', password: 'p@:1' }],
];
for (const [text, expected] of urls) {
  test(`server address: ${text}`, () => {
    assert.deepEqual(parseServerUrl(text, {}), { ...DEFAULTS, ...expected });
  });
}

for (const kind of STORE_KINDS) {
  test(`${kind.name}: a store of a newer version`, async (t) => {
    const place = await kind.make(t);
    const store = await place.open();
    await store.query("INSERT INTO schema_version (version, what) SELECT 99, 'from the future'");
    await store.close();
    await assert.rejects(place.open(), (error) => {
      assert.ok(error instanceof InputError);
      assert.equal(error.exitCode, EXIT.configuration);
      return /schema version 2 or older, found version 99\n {2}A newer limitlens/.test(
        error.message,
      );
    });
  });
}

async function listening(t: Cleanup, answer: string | undefined): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (answer !== undefined) socket.once('data', () => socket.end(answer));
    t.after(() => {
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return `http://127.0.0.1:${address.port}`;
}

const page = '<html>It works!</html>';
const foreign = [
  ['a web server', `HTTP/1.1 200 OK\r\nContent-Length: ${page.length}\r\n\r\n${page}`],
  [
    'a web server without such a page',
    `HTTP/1.1 404 Not Found\r\nContent-Length: ${page.length}\r\n\r\n${page}`,
  ],
  ['a proxy without a server behind', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'],
  ['something that does not speak HTTP', 'Code: 101 native protocol\r\n'],
] as const;
for (const [what, answer] of foreign) {
  test(`${what} at the address`, async (t) => {
    const url = await listening(t, answer);
    await refuses({ url }, EXIT.io, /not ClickHouse|something else|connection failed/);
  });
}

test('nobody listens', async (t) => {
  const url = await listening(t, '');
  const { port } = new URL(url);
  // A port that was free a moment ago would race; port 1 of the loopback is nobody's.
  await refuses({ url: 'http://127.0.0.1:1' }, EXIT.io, /connection failed \(ECONNREFUSED\)/);
  await refuses({ url: `https://127.0.0.1:${port}` }, EXIT.io, /TLS failed|connection failed/);
});

test('no answer in time', async (t) => {
  const url = await listening(t, undefined);
  await refuses({ url, connectTimeoutMs: 50 }, EXIT.io, /did not answer in time/);
});

test('wrong user or password; the message holds neither', async (t) => {
  const server = await startFakeServer({ dataPath: makeTempDir(t), password: 'right' });
  t.after(() => server.close());
  const host = server.url.slice('http://'.length);
  const error = await refuses(
    { url: `http://someone:hunter2@${host}` },
    EXIT.configuration,
    /refused the user or the password/,
  );
  assert.doesNotMatch(error.message, /hunter2|someone/);
  const env = { CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: 'right' };
  const url = `${server.url}/in_url`;
  const store = await openStore({ url, createIfMissing: true, env });
  assert.equal(store.where, url);
  await store.close();
});

test('a server that is too old', async (t) => {
  const server = await startFakeServer({ dataPath: makeTempDir(t), version: '18.16.1' });
  t.after(() => server.close());
  await refuses({ url: server.url }, EXIT.configuration, /24\.3 or newer, found "18\.16\.1"/);
});

test('a user without the right to make a database', async (t) => {
  const server = await startFakeServer({ dataPath: makeTempDir(t) });
  t.after(() => server.close());
  server.setFaults([
    { kind: 'exception', sql: /CREATE DATABASE/, code: 497, type: 'ACCESS_DENIED' },
  ]);
  await refuses({ url: server.url }, EXIT.configuration, /no right to do this/);
});
