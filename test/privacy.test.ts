/**
 * What is stored of addresses and query strings: texts, rows, and what is in a real store and spool
 * after an import and after the daemon.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { KEEP_ADDRESSES, Privacy, withoutArguments } from '../src/pipeline/privacy.js';
import { StateSeal } from '../src/pipeline/state-seal.js';
import { openStore } from '../src/store/store.js';
import { ALL_TABLE_NAMES } from '../src/store/tables.js';
import { mustRun, runCli, startCli } from './support/cli.js';
import { makeTempDir } from './support/temp-dir.js';

const CUT = new Privacy({ ...KEEP_ADDRESSES, addresses: 'truncate' });
const HASH = new Privacy({ ...KEEP_ADDRESSES, addresses: 'hash', secret: 'a secret of the tests' });
const ALL = new Privacy({ ...KEEP_ADDRESSES, keys: 'all', secret: 'a secret of the tests' });

const TRUNCATED: readonly (readonly [string, string])[] = [
  ['192.0.2.66', '192.0.2.0/24'],
  ['2001:db8:bad::1', '2001:db8:bad::/48'],
  ['2001:DB8:BAD:0:0:0:0:1', '2001:db8:bad::/48'],
  ['::1', '::/48'],
  ['::ffff:192.0.2.66', '::ffff:192.0.2.0/120'],
  // Keys of several variables.
  ['192.0.2.66/login', '192.0.2.0/24/login'],
  ['192.0.2.66/24', '192.0.2.0/24/24'],
  ['GET192.0.2.66', 'GET192.0.2.0/24'],
  ['2001:db8:bad::1GET', '2001:db8:bad::/48GET'],
  ['192.0.2.66:443', '192.0.2.0/24:443'],
  ['http:2001:db8:bad::1', 'http:2001:db8:bad::/48'],
  ['192.0.2.66 192.0.2.67', '192.0.2.0/24 192.0.2.0/24'],
  ['a.de2001:db8:bad::1', 'a.de2001:db8:bad::/48'],
  // With something grown to it that makes another address of it, or none.
  ['404.192.0.2.66', '[address].66'],
  ['429999.2.3.4', '429[address]'],
  ['10:00:00:2001:db8:bad::1', '10::/48'],
  ['1:2:3:4:5:6:7:8:9:192.0.2.66', '1:2:3::/48:9:192.0.2.0/24'],
  ['a:b:192.0.2.66', 'a:b:192.0.2.0/24'],
  // None.
  ['2026/03/02 10:00:00', '2026/03/02 10:00:00'],
  ['nginx/1.22.1', 'nginx/1.22.1'],
  ['demo-partner', 'demo-partner'],
  ['', ''],
];

for (const [text, expected] of TRUNCATED) {
  test(`truncated: ${JSON.stringify(text)}`, () => {
    assert.equal(CUT.text(text), expected);
  });
}

const octet = fc.nat({ max: 255 }).map(String);
const ipv4 = fc
  .tuple(
    fc.integer({ min: 1, max: 254 }).map(String),
    octet,
    octet,
    fc.integer({ min: 1, max: 254 }).map(String),
  )
  .map((parts) => parts.join('.'));

test('no address comes through, whatever stands around it', () => {
  const around = fc.string({
    unit: fc.constantFrom(...' :."?/=,[]-_abcdefXYZ0123456789'),
    maxLength: 12,
  });
  fc.assert(
    fc.property(fc.oneof(ipv4, fc.ipV6()), around, around, (address, before, after) => {
      // Digits that grow to a number make another address of it, of which the rest is cut as well.
      const text = `${before} ${address} ${after}`;
      for (const privacy of [CUT, HASH]) {
        const shown = privacy.text(text);
        assert.ok(
          !shown.includes(` ${address} `) || /^[0:]+(?:[1-9a-f]{0,4})?$/.test(address),
          shown,
        );
      }
    }),
    { seed: 1, numRuns: 2000 },
  );
});

test('an address in the middle of a text keeps its network alone, or its hash alone', () => {
  fc.assert(
    fc.property(ipv4, fc.stringMatching(/^[G-Zg-z/_-]{0,8}$/), (address, other) => {
      const network = `${address.split('.').slice(0, 3).join('.')}.0/24`;
      assert.equal(CUT.key(`${other}${address}${other}`), `${other}${network}${other}`);
      const hashed = HASH.key(`${other}${address}${other}`);
      assert.match(hashed.slice(other.length), /^ip-[0-9a-f]{16}/);
      assert.equal(hashed, `${other}${HASH.key(address)}${other}`);
    }),
    { seed: 1 },
  );
});

test('a hash is of the address, not of its spelling, and needs the secret', () => {
  assert.equal(HASH.key('::ffff:192.0.2.1'), HASH.key('192.0.2.1'));
  assert.equal(HASH.key('2001:DB8::1'), HASH.key('2001:db8:0::1'));
  assert.notEqual(HASH.key('192.0.2.1'), HASH.key('192.0.2.2'));
  const other = new Privacy({ ...KEEP_ADDRESSES, addresses: 'hash', secret: 'another' });
  assert.notEqual(other.key('192.0.2.1'), HASH.key('192.0.2.1'));
});

test('all keys hashed: tokens too; and what is no key stays', () => {
  assert.match(ALL.key('demo-partner'), /^key-[0-9a-f]{16}$/);
  assert.equal(ALL.key('demo-partner'), ALL.key('demo-partner'));
  assert.equal(ALL.text('/list'), '/list');
  assert.equal(ALL.key(''), '');
});

test('prefixes are of bits that addresses have', () => {
  const cut = (ipv4Bits: number, ipv6Bits: number): Privacy =>
    new Privacy({ ...KEEP_ADDRESSES, addresses: 'truncate', ipv4Bits, ipv6Bits });
  assert.equal(cut(16, 48).text('192.168.77.1'), '192.168.0.0/16');
  assert.equal(cut(20, 48).text('192.168.77.1'), '192.168.64.0/20');
  assert.equal(cut(0, 0).text('192.168.77.1 2001:db8::1'), '0.0.0.0/0 ::/0');
  assert.throws(() => cut(33, 48), /--privacy-ipv4-prefix 33: expected at most 32 bits/);
  assert.throws(() => cut(24, 129), /--privacy-ipv6-prefix 129: expected at most 128 bits/);
});

test('lines lose their arguments, and nothing else', () => {
  const cases = [
    ['"GET /x?token=geheim HTTP/1.1" 200', '"GET /x?… HTTP/1.1" 200'],
    ['{"uri":"/x?token=geheim","status":200}', '{"uri":"/x?…","status":200}'],
    ['request: "GET /x?a="geheim"b HTTP/1.1", host', 'request: "GET /x?… HTTP/1.1", host'],
    ['args="token=geheim&b=2" rt=0.001 us="200"', 'args="…" rt=0.001 us="200"'],
    ['rt=0.001 us="200" lr=PASSED', 'rt=0.001 us="200" lr=PASSED'],
    ['GET /x?token=geheim', 'GET /x?…'],
  ] as const;
  for (const [line, expected] of cases) assert.equal(withoutArguments(line), expected);
});

test('a sealed state opens with its secret alone, and does not show what it holds', () => {
  const state = JSON.stringify({ zones: ['192.0.2.66'] });
  const seal = new StateSeal('a secret of the tests');
  const kept = seal.seal(state);
  assert.ok(!kept.includes('192.0.2.66'));
  assert.notEqual(seal.seal(state), kept);
  assert.equal(seal.open(kept), state);
  assert.equal(seal.open(state), state);
  assert.equal(new StateSeal().seal(state), state);
  assert.throws(() => new StateSeal().open(kept), /is sealed: give --privacy-key-file/);
  assert.throws(() => new StateSeal('another one').open(kept), /sealed with another secret/);
  const forged = `${kept.slice(0, -6)}AAAA==`;
  assert.throws(() => seal.open(forged), /sealed with another secret/);
});

/** Clients of the samples, of which some are in every table that has keys. */
const CLIENTS = /192\.0\.2\.6[67]|198\.51\.100\.\d*[1-9]\b|2001:db8:\w+::\w/;

interface PrivateSite {
  readonly folder: string;
  readonly keyFile: string;
  readonly logs: readonly string[];
}

/** The logs of the samples, with lines that nobody can read and that hold what is not to be stored. */
function makeSite(t: TestContext): PrivateSite {
  const folder = makeTempDir(t);
  const keyFile = join(folder, 'key');
  writeFileSync(keyFile, 'a secret of the tests\n');
  for (const name of ['access.log', 'error.log'])
    copyFileSync(`samples/${name}`, join(folder, name));
  appendFileSync(
    join(folder, 'access.log'),
    'broken 192.0.2.66 - "GET /x?token=geheim HTTP/1.1" 2001:db8:bad::1 198.51.100.44\n',
  );
  appendFileSync(join(folder, 'error.log'), 'nonsense from 192.0.2.67 ?token=geheim\n');
  const logs = ['--error-log', join(folder, 'error.log'), join(folder, 'access.log')];
  return { folder, keyFile, logs: ['--conf', 'samples/nginx.conf', ...logs] };
}

/** A state with what it holds in base64. */
function decoded(state: string): string {
  const inside = [...state.matchAll(/"([A-Za-z0-9+/]{16,}={0,2})"/g)];
  return [state, ...inside.map((match) => Buffer.from(match[1]!, 'base64').toString())].join('\n');
}

/** Every table as text, checkpoints unpacked. */
async function tablesOf(path: string): Promise<Map<string, string>> {
  const store = await openStore({ path, createIfMissing: false, readOnly: true });
  const texts = new Map<string, string>();
  try {
    for (const table of ALL_TABLE_NAMES) {
      const rows = await store.query<Record<string, unknown>>(`SELECT * FROM ${table}`);
      let text = rows.map((row) => JSON.stringify(row)).join('\n');
      if (table === 'checkpoints') {
        const newest = Math.max(...rows.map((row) => Number(row['sequence'])));
        const parts = rows.filter((row) => Number(row['sequence']) === newest);
        parts.sort((a, b) => Number(a['part']) - Number(b['part']));
        const packed = Buffer.from(parts.map((row) => String(row['chunk'])).join(''), 'base64');
        text = decoded(gunzipSync(packed).toString());
      }
      texts.set(table, text);
    }
  } finally {
    await store.close();
  }
  return texts;
}

function holds(texts: ReadonlyMap<string, string>, pattern: RegExp): string[] {
  return [...texts].filter(([, text]) => pattern.test(text)).map(([name]) => name);
}

test('an import keeps addresses by default, and query strings nowhere', async (t) => {
  const { folder, logs } = makeSite(t);
  const store = join(folder, 'store');
  await mustRun(['import', '--store', store, ...logs]);
  const texts = await tablesOf(store);
  const tables = ['checkpoints', 'examples', 'key_minutes', 'unparsable_samples'];
  assert.deepEqual(holds(texts, CLIENTS).sort(), tables);
  assert.deepEqual(holds(texts, /geheim/), []);
});

for (const how of ['truncate', 'hash'] as const) {
  test(`an import with --privacy ${how} stores no address of a client anywhere`, async (t) => {
    const { folder, keyFile, logs } = makeSite(t);
    const store = join(folder, 'store');
    const dead = join(folder, 'dead.ndjson');
    const privacy = ['--privacy', how, '--privacy-key-file', keyFile, '--dead-letter', dead];
    await mustRun(['import', '--store', store, ...privacy, ...logs]);
    const texts = await tablesOf(store);
    assert.deepEqual(holds(texts, CLIENTS), []);
    assert.deepEqual(holds(texts, /geheim/), []);
    const shown = how === 'hash' ? /ip-[0-9a-f]{16}/ : /192\.0\.2\.0\/24/;
    assert.deepEqual(holds(texts, shown).sort(), ['examples', 'key_minutes', 'unparsable_samples']);
    const letters = readFileSync(dead, 'utf8');
    assert.match(letters, shown);
    assert.doesNotMatch(letters, CLIENTS);
    assert.doesNotMatch(letters, /geheim/);
    // Tokens are no addresses.
    assert.deepEqual(holds(texts, /demo-partner/).sort(), ['examples', 'key_minutes']);
    if (how === 'hash') return;
    // The next import goes on from the sealed state, with its key alone.
    const last = readFileSync(join(folder, 'access.log'), 'utf8').split('\n').at(-3)!;
    appendFileSync(join(folder, 'access.log'), `${last}\n`);
    const again = await runCli(['import', '--store', store, ...logs]);
    assert.equal(again.code, 78, again.stderr);
    assert.match(again.stderr, /is sealed: give --privacy-key-file/);
    await mustRun(['import', '--store', store, ...privacy, ...logs]);
  });
}

test('the limiter decides on whole addresses: counts are those of an import that keeps them', async (t) => {
  const { folder, keyFile, logs } = makeSite(t);
  const sums = async (name: string, ...privacy: string[]): Promise<unknown> => {
    const path = join(folder, name);
    await mustRun(['import', '--store', path, ...privacy, ...logs]);
    const store = await openStore({ path, createIfMissing: false, readOnly: true });
    const rows = await store.query(
      `SELECT zone, sum(passed) p, sum(delayed) d, sum(rejected) r, sum(rejected_dry_run) rd,
       max(excess_max_milli) m FROM key_minutes GROUP BY zone ORDER BY zone`,
    );
    await store.close();
    return rows;
  };
  const kept = await sums('kept');
  assert.deepEqual(await sums('cut', '--privacy', 'truncate', '--privacy-key-file', keyFile), kept);
});

test('the daemon stores no address of a client either, in store or spool', async (t) => {
  const { folder, keyFile, logs } = makeSite(t);
  const store = join(folder, 'store');
  const spool = join(folder, 'spool');
  const privacy = ['--privacy', 'truncate', '--privacy-key-file', keyFile];
  const tail = ['tail', '--store', store, '--spool', spool, '--listen', '127.0.0.1:0'];
  const child = startCli([...tail, '--commit-interval', '50ms', ...privacy, ...logs]);
  t.after(() => child.kill('SIGKILL'));
  const said: string[] = [];
  const lines = createInterface({ input: child.stderr! });
  lines.on('line', (line) => said.push(line));
  while (!said.some((line) => line.includes('"stored"'))) await once(lines, 'line');
  // Before a drain requests wait in the state, whole lines among them.
  child.kill('SIGKILL');
  await once(child, 'exit');
  const spooled = new Map<string, string>();
  for (const entry of readdirSync(spool, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = readFileSync(join(entry.parentPath, entry.name));
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
    spooled.set(entry.name, decoded((isPacked ? gunzipSync(bytes) : bytes).toString()));
  }
  assert.ok(
    [...spooled.keys()].some((name) => name.endsWith('.place')),
    said.join('\n'),
  );
  assert.deepEqual(holds(spooled, CLIENTS), []);
  assert.deepEqual(holds(spooled, /geheim/), []);
  const again = startCli([...tail, ...privacy, ...logs]);
  t.after(() => again.kill('SIGKILL'));
  const more = createInterface({ input: again.stderr! });
  const isFollowing = new Promise<void>((resolve) => {
    more.on('line', (line) => {
      said.push(line);
      if (line.includes('"follows"')) resolve();
    });
  });
  await isFollowing;
  again.kill('SIGTERM');
  assert.deepEqual(await once(again, 'exit'), [0, null], said.join('\n'));
  const texts = await tablesOf(store);
  assert.deepEqual(holds(texts, CLIENTS), []);
  assert.deepEqual(holds(texts, /geheim/), []);
  assert.ok(holds(texts, /192\.0\.2\.0\/24/).includes('key_minutes'));
  assert.doesNotMatch(said.join('\n'), CLIENTS);
});

test('what --privacy needs is said', async (t) => {
  const { folder, logs } = makeSite(t);
  const short = join(folder, 'short');
  writeFileSync(short, 'short\n');
  const run = (...args: string[]): ReturnType<typeof runCli> =>
    runCli(['import', '--store', join(folder, 's'), ...args, ...logs]);
  const bare = await run('--privacy', 'hash');
  assert.equal(bare.code, 64);
  assert.match(bare.stderr, /--privacy needs --privacy-key-file FILE/);
  const weak = await run('--privacy', 'hash', '--privacy-key-file', short);
  assert.equal(weak.code, 78);
  assert.match(weak.stderr, /expected at least 16 characters, found 5/);
});
