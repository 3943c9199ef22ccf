/**
 * Logs in all the forms in which people have them: through a pipe, from containers, in own formats,
 * of several generations, and with lines that are none.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { confArguments } from './support/agreement.js';
import { confOf, Imports, sums } from './support/imports.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir, type TraceName } from './support/truth.js';

function path(trace: TraceName, file: string): string {
  return join(traceDir(trace), file);
}

function linesOf(file: string): string[] {
  return readFileSync(file, 'latin1').trimEnd().split('\n');
}

interface TimedLine {
  readonly ms: number;
  readonly text: string;
  readonly stream: 'stdout' | 'stderr';
}

/** What a container's one stream holds of both logs. */
function mixedLines(trace: TraceName): TimedLine[] {
  const access = linesOf(path(trace, 'access.log')).map((text): TimedLine => {
    const seconds = /"msec":([\d.]+)/.exec(text)![1]!;
    return { ms: Math.round(Number(seconds) * 1000), text, stream: 'stdout' };
  });
  const error = linesOf(path(trace, 'error.log')).map((text): TimedLine => {
    const time = text.slice(0, 19).replaceAll('/', '-').replace(' ', 'T');
    return { ms: Date.parse(`${time}Z`), text, stream: 'stderr' };
  });
  return [...access, ...error].sort((a, b) => a.ms - b.ms);
}

function asDocker({ ms, text, stream }: TimedLine): string {
  return `${JSON.stringify({ log: `${text}\n`, stream, time: new Date(ms).toISOString() })}\n`;
}

/** Long lines in two parts, as the runtime cuts them at 16 KiB. */
function asCri({ ms, text, stream }: TimedLine): string {
  const prefix = `${new Date(ms).toISOString().replace('Z', '000000Z')} ${stream}`;
  if (text.length < 200) return `${prefix} F ${text}\n`;
  return `${prefix} P ${text.slice(0, 150)}\n${prefix} F ${text.slice(150)}\n`;
}

function write(dir: string, name: string, text: string): string {
  const file = join(dir, name);
  writeFileSync(
    file,
    name.endsWith('.gz') ? gzipSync(Buffer.from(text, 'latin1')) : text,
    'latin1',
  );
  return file;
}

const TRACE = 'a_burst5_delay';

void suite('logs in all forms', { concurrency: 2 }, () => {
  test('a pipe and the streams of containers count as the files do', async (t) => {
    const dir = makeTempDir(t);
    const conf = [confOf(TRACE)];
    const files = new Imports(dir, conf, 'files');
    await files.add([path(TRACE, 'access.log'), path(TRACE, 'error.log')]);
    const expected = sums(await files.report());
    const mixed = mixedLines(TRACE);
    const docker = mixed.map(asDocker).join('');
    const given: [string, string[], string | undefined][] = [
      ['pipe', ['-', path(TRACE, 'error.log')], readFileSync(path(TRACE, 'access.log'), 'latin1')],
      ['docker', [write(dir, 'c0ffee-json.log', docker)], undefined],
      ['dockergz', [write(dir, 'c0ffee-json.log.1.gz', docker)], undefined],
      ['cri', ['-'], mixed.map(asCri).join('')],
    ];
    for (const [name, args, stdin] of given) {
      const imports = new Imports(dir, conf, name);
      await imports.add(args, stdin === undefined ? {} : { stdin: Buffer.from(stdin, 'latin1') });
      assert.deepEqual(sums(await imports.report()), expected, name);
    }
  });

  test('what else is on standard input does not reach the store', async (t) => {
    const imports = new Imports(makeTempDir(t), [confOf(TRACE)]);
    const { summary } = await imports.add([path(TRACE, 'access.log')], { stdin: 'not a log\n' });
    assert.equal(summary.lines.access, linesOf(path(TRACE, 'access.log')).length);
    assert.equal(summary.lines.unparsable, 0);
  });

  test('two access logs of one request: the telling one counts, unless all are wanted', async (t) => {
    const dir = makeTempDir(t);
    const imports = new Imports(dir, [confOf(TRACE)]);
    const combined = path(TRACE, 'combined.log');
    const files = [combined, path(TRACE, 'access.log')];
    const one = await imports.add(files);
    assert.ok(one.stderr.includes(`${combined} holds the same requests as ${files[1]!}: left out`));
    assert.deepEqual(
      one.files.map((file) => file.path),
      [files[1]],
    );
    const both = new Imports(dir, [confOf(TRACE)], 'both');
    const all = await both.add([...files, '--all-logs']);
    assert.equal(all.summary.requests, 2 * one.summary.requests);
  });

  test('with less in the log: what is missing is named once', async (t) => {
    const dir = makeTempDir(t);
    const imports = new Imports(dir, [confOf(TRACE)]);
    const lines = linesOf(path(TRACE, 'combined.log'));
    const half = lines.length >> 1;
    const { stderr, summary } = await imports.add([
      write(dir, 'combined.log.1', `${lines.slice(0, half).join('\n')}\n`),
      write(dir, 'combined.log', `${lines.slice(half).join('\n')}\n`),
    ]);
    assert.equal(stderr.match(/does without \$msec \$request_time \$connection:/g)?.length, 1);
    assert.match(stderr, /times are whole seconds, so bounds are wide/);
    assert.equal(summary.requests, lines.length);
    assert.equal(summary.agreement.explained, summary.compared);
  });

  test('a format by name and by text, and one that cannot be told', async (t) => {
    const dir = makeTempDir(t);
    const conf = write(
      dir,
      'nginx.conf',
      `events {}
http {
  log_format first '$remote_addr [$time_local] "$request" $status $body_bytes_sent';
  log_format second '$remote_addr [$time_local] "$request" $status $request_length';
  limit_req_zone $remote_addr zone=z:1m rate=1r/s;
  server { listen 80; location / { limit_req zone=z; } }
}
`,
    );
    const line = '192.0.2.1 [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 10\n';
    const log = write(dir, 'some.log', line);
    const refused = new Imports(dir, [conf], 'refused');
    const run = await refused.try([log]);
    assert.equal(run.code, 65);
    assert.match(run.stderr, /some\.log: the log formats "first", "second" fit its lines equally/);
    assert.match(run.stderr, /--log-format NAME/);
    assert.equal(refused.exists, false);
    const text = '$remote_addr [$time_local] "$request" $status $bytes_sent';
    for (const [name, format] of [
      ['first', 'first'],
      ['given', text],
    ] as const) {
      const imports = new Imports(dir, [conf], name);
      const result = await imports.add([log, '--log-format', format]);
      assert.equal(result.files[0]!.format, name);
      assert.equal(result.summary.requests, 1);
    }
    const unknown = await refused.try([log, '--log-format', 'third']);
    assert.equal(unknown.code, 64);
    assert.match(unknown.stderr, /known are .*first, second/);
  });

  test('lines that are none: counted, sampled, and written down whole', async (t) => {
    const dir = makeTempDir(t);
    const good = linesOf(path(TRACE, 'access.log')).slice(0, 20);
    const bad = ['nonsense', `{"msec":x${'y'.repeat(300)}`, '\xff\x1b[31mred \x07'];
    const lines = [good[0]!, bad[0]!, ...good.slice(1, 9), bad[1]!, bad[2]!, ...good.slice(9)];
    const log = write(dir, 'access.log', `${lines.join('\n')}\n`);
    const letters = join(dir, 'dead.ndjson');
    const imports = new Imports(dir, [confOf(TRACE)]);
    const run = await imports.try([log, '--dead-letter', letters, '--strict']);
    assert.equal(run.code, 65);
    assert.match(run.stdout, /^20 requests/m);
    assert.match(run.stdout, /^3 lines could not be read/m);
    const ndjson = readFileSync(letters, 'utf8').trimEnd().split('\n');
    const written = ndjson.map(
      (line) => JSON.parse(line) as { file: string; offset: number; reason: string; raw: string },
    );
    assert.deepEqual(
      written.map(({ raw }) => raw),
      bad,
    );
    const content = readFileSync(log, 'latin1');
    for (const { file, offset, reason, raw } of written) {
      assert.equal(file, log);
      assert.ok(reason.startsWith('expected '), reason);
      assert.equal(content.slice(offset, offset + raw.length), raw);
    }
    const report = await imports.report();
    const unparsable = report.lines.filter((row) => row.kind === 'unparsable');
    assert.equal(
      unparsable.reduce((sum, row) => sum + row.lines, 0),
      3,
    );
    assert.equal(report.unparsable.length, 3);
    const lenient = new Imports(dir, [confOf(TRACE)], 'lenient');
    assert.equal((await lenient.add([log])).summary.lines.unparsable, 3);
  });

  test('several generations of a configuration', async (t) => {
    const dir = traceDir('p_reload');
    const confs = confArguments(dir).filter((arg) => arg !== '--conf');
    assert.ok(confs.length > 1);
    const imports = new Imports(makeTempDir(t), confs);
    const { summary } = await imports.add([join(dir, 'access.log'), join(dir, 'error.log')]);
    assert.equal(summary.requests, linesOf(join(dir, 'access.log')).length);
    assert.ok(
      summary.agreement.agree >= 0.96 * summary.compared,
      JSON.stringify(summary.agreement),
    );
    assert.ok(summary.agreement.explained >= 0.995 * summary.compared);
  });
});

/** The trace again and again, each time an hour later: more than a thread of its own is worth. */
function longLog(copies: number): string {
  const lines = linesOf(path('g_mixed_2workers', 'access.log'));
  const parts: string[] = [];
  for (let n = 0; n < copies; n++) {
    for (const line of lines) {
      parts.push(
        line.replace(
          /"msec":(\d+)/,
          (_, seconds: string) => `"msec":${Number(seconds) + 3600 * n}`,
        ),
      );
    }
  }
  return `${parts.join('\n')}\n`;
}

test('chunks and threads do not show in the report', async (t) => {
  const dir = makeTempDir(t);
  const conf = [confOf('g_mixed_2workers')];
  const reportOf = async (name: string, args: readonly string[]): Promise<string> => {
    const imports = new Imports(dir, conf, name);
    await imports.add(args);
    return JSON.stringify(await imports.report());
  };
  const small = [path('g_mixed_2workers', 'access.log'), path('g_mixed_2workers', 'error.log')];
  const whole = await reportOf('whole', small);
  for (const bytes of ['1', '7', '64', '4096']) {
    const chunked = await reportOf(`chunk${bytes}`, [...small, '--chunk-bytes', bytes]);
    assert.equal(chunked, whole, `--chunk-bytes ${bytes}`);
  }
  // Read apart only from eight million bytes on.
  const long = write(dir, 'long.log', longLog(10));
  assert.ok(readFileSync(long).length > 8_000_000);
  const one = await reportOf('one', [long, '--threads', '1']);
  const two = await reportOf('two', [long, '--threads', '2']);
  assert.equal(two, one);
});
