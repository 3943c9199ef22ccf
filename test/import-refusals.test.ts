/**
 * What cannot be imported: a clear message, the right exit code, and a store that is as it was.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { runCli, type CliOptions, type CliRun } from './support/cli.js';
import { startFakeServer } from './support/clickhouse-http.js';
import { confOf, Imports, sums } from './support/imports.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const ACCESS = join(traceDir('a_burst5_delay'), 'access.log');
const CONF = confOf('a_burst5_delay');
const NOBODY = 65534;
/** Where the tests run as root, what root may do shows nothing. */
const asNobody = process.getuid?.() === 0 ? { uid: NOBODY } : {};

function assertRefused(run: CliRun, code: number, ...messages: RegExp[]): void {
  assert.equal(run.code, code, run.stderr);
  assert.equal(run.stdout, '');
  for (const message of messages) assert.match(run.stderr, message);
  assert.doesNotMatch(run.stderr, /this is a bug|\n\s+at /);
}

/** Bytes that compress badly, so that a part of the gzip data is a part of the content. */
function noise(length: number): Buffer {
  let state = 12345;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state >>> 24;
    }),
  );
}

function makeDir(t: TestContext): string {
  const dir = makeTempDir(t);
  // Another user has to get at what is in it.
  chmodSync(dir, 0o755);
  return dir;
}

void suite('files that are no logs', { concurrency: 2 }, () => {
  test('missing, a folder, binary, damaged from the first byte, of no known format', async (t) => {
    const dir = makeDir(t);
    const imports = new Imports(dir, [CONF]);
    await imports.add([ACCESS]);
    const before = await imports.report();
    const file = (name: string, content: string | Uint8Array): string => {
      writeFileSync(join(dir, name), content);
      return join(dir, name);
    };
    const gzipped = gzipSync(readFileSync(ACCESS));
    const refused: [string, number, RegExp][] = [
      [join(dir, 'missing.log'), 66, /missing\.log: no such file/],
      [dir, 66, /is a directory, expected a log file/],
      [
        file('core', noise(20_000)),
        65,
        /core: expected the lines of an nginx log, found binary data/,
      ],
      [file('cut.gz', gzipped.subarray(0, 12)), 65, /cut\.gz: .*ends too early/],
      [
        file('bad.gz', Buffer.concat([Buffer.from([0x1f, 0x8b]), noise(500)])),
        65,
        /bad\.gz: .*gzip data is damaged/,
      ],
      [
        file('other.log', 'one\ntwo\n'),
        65,
        /other\.log:1:4: expected .*found the end of the line\n.*--conf.*--log-format/,
      ],
    ];
    for (const [path, code, message] of refused) {
      assertRefused(await imports.try([path]), code, message);
    }
    // One that is none spoils the call, before anything of the others is counted.
    assertRefused(await imports.try([ACCESS, join(dir, 'missing.log')]), 66, /no such file/);
    assert.deepEqual(await imports.report(), before);
  });

  test('a file that may not be read', async (t) => {
    const dir = makeDir(t);
    const log = join(dir, 'access.log');
    writeFileSync(log, readFileSync(ACCESS));
    chmodSync(log, 0);
    const imports = new Imports(dir, [CONF]);
    const run = await imports.try([log], asNobody);
    assertRefused(run, 66, /access\.log: no permission to read it/);
    assert.equal(imports.exists, false);
  });

  test('cut or damaged gzip: what comes before counts, and the whole goes on from there', async (t) => {
    const dir = makeDir(t);
    const lines = readFileSync(ACCESS, 'latin1');
    const gzipped = gzipSync(lines);
    const whole = new Imports(dir, [CONF], 'whole');
    await whole.add([ACCESS]);
    const log = join(dir, 'access.log.2.gz');
    const imports = new Imports(dir, [CONF]);
    writeFileSync(log, gzipped.subarray(0, gzipped.length >> 1));
    const run = await imports.try([log]);
    assert.equal(run.code, 65);
    assert.match(
      run.stderr,
      /access\.log\.2\.gz: after \d+ bytes .*the file is truncated\n.*to go on/,
    );
    const part = (await imports.report()).spans[0]!.requests;
    assert.ok(part > 20, `${part} requests`);
    writeFileSync(log, gzipped);
    const rest = await imports.add([log]);
    assert.equal(part + rest.summary.requests, lines.trimEnd().split('\n').length);
    assert.deepEqual(sums(await imports.report()), sums(await whole.report()));
  });
});

void suite('configurations and stores', { concurrency: 2 }, () => {
  test('a configuration that is missing, or that nginx refuses', async (t) => {
    const dir = makeDir(t);
    const conf = join(dir, 'nginx.conf');
    writeFileSync(conf, 'events {}\nhttp {\n  limit_req_zone $uri zone=z:1m rate=0r/s;\n}\n');
    const imports = new Imports(dir, [conf]);
    assertRefused(await imports.try([ACCESS]), 78, /nginx\.conf:3: invalid rate "rate=0r\/s"/);
    const none = new Imports(dir, [join(dir, 'none.conf')]);
    assertRefused(await none.try([ACCESS]), 66, /none\.conf: no such file\n.*nginx -T/);
    assert.equal(imports.exists, false);
  });

  test('a place that is no store, and one that may not be written', async (t) => {
    const dir = makeDir(t);
    writeFileSync(join(dir, 'file'), '');
    mkdirSync(join(dir, 'folder'));
    writeFileSync(join(dir, 'folder', 'holiday.jpg'), '');
    const at = (store: string, options: CliOptions = {}): Promise<CliRun> =>
      new Imports(dir, [CONF], store).try([ACCESS], options);
    assertRefused(await at('file'), 66, /expected a folder, found a file/);
    assertRefused(await at('folder'), 66, /found a folder without limitlens-store\.json/);
    assertRefused(
      await runCli(['report', '--store', join(dir, 'none')]),
      66,
      /expected a limitlens store, found nothing/,
    );
    mkdirSync(join(dir, 'closed'));
    chmodSync(join(dir, 'closed'), 0o555);
    assertRefused(await at('closed/store', asNobody), 74, /found no permission \(EACCES\)/);
  });

  test('a store of a newer version, and one that another process has open', async (t) => {
    const dir = makeDir(t);
    const imports = new Imports(dir, [CONF]);
    await imports.add([ACCESS]);
    const before = await imports.report();
    const child = new URL('./support/store-child.js', import.meta.url).pathname;
    const holder = spawn(process.execPath, [child, 'hold', imports.store], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => holder.kill('SIGKILL'));
    await once(holder.stdout, 'data');
    const busy = new RegExp(`in use by another process \\(pid ${holder.pid}\\)`);
    assertRefused(await imports.try([ACCESS]), 74, busy);
    assertRefused(await runCli(['report', '--store', imports.store]), 74, busy);
    holder.kill('SIGKILL');
    await once(holder, 'close');
    assert.deepEqual(await imports.report(), before);
    const marker = join(imports.store, 'limitlens-store.json');
    writeFileSync(marker, readFileSync(marker, 'utf8').replace(/\d+/, '99'));
    assertRefused(
      await imports.try([ACCESS]),
      78,
      /expected layout 1, found 99\n.*newer limitlens/,
    );
  });

  test('a server that refuses the connection or the password', async (t) => {
    const dir = makeDir(t);
    const server = await startFakeServer({ dataPath: dir, user: 'lens', password: 'right' });
    t.after(() => server.close());
    const at = (url: string): Promise<CliRun> =>
      runCli(['import', '--conf', CONF, '--clickhouse', url, ACCESS]);
    const url = new URL(server.url);
    assertRefused(
      await at(`http://lens:wrong@${url.host}`),
      78,
      /the server refused the user or the password\n.*CLICKHOUSE_PASSWORD/,
    );
    assertRefused(await at('http://127.0.0.1:1'), 74, /the connection failed \(ECONNREFUSED\)/);
    assertRefused(await at('nonsense'), 64, /--clickhouse: expected a URL like/);
    assert.doesNotMatch((await at(`http://lens:wr0ng@${url.host}`)).stderr, /wr0ng/);
  });
});
