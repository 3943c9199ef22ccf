/**
 * `limitlens serve` and the daemon's page, as processes: what they print, serve, refuse and how they end.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PanelAnswer } from '../dashboards/page/wire.js';
import { finished, mustRun, runCli, startCli } from './support/cli.js';
import { makeTempDir } from './support/temp-dir.js';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

/** Ends it with the test, whatever became of it. */
function started(t: test.TestContext, args: readonly string[]): ChildProcess {
  const child = startCli(args);
  t.after(() => {
    if (child.exitCode === null) child.kill('SIGKILL');
  });
  return child;
}

/** The first thing on a stream that looks like that. */
function said(stream: NodeJS.ReadableStream, what: RegExp): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    // Others go on reading it.
    stream.on('data', (chunk) => {
      text += String(chunk);
      const match = what.exec(text);
      if (match !== null) resolve(match[1]!);
    });
    stream.once('end', () => reject(new Error(`ended with ${text}`)));
  });
}

async function head(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url), 'response')) as [IncomingMessage];
  response.resume();
  return response;
}

test('serve', async (t) => {
  const store = join(makeTempDir(t), 'store');
  const conf = ['--conf', 'samples/nginx.conf', '--store', store];
  await mustRun(['import', ...conf, 'samples/access.log', 'samples/error.log']);
  const child = started(t, ['serve', '--store', store, '--listen', '127.0.0.1:0']);
  const ended = finished(child);
  const url = await said(child.stdout!, /^(http:\/\/127\.0\.0\.1:\d+)\/\n/);

  await t.test(
    'gives the page with its policy, and nothing in it that the policy stops',
    async () => {
      for (const path of ['/', '/overview', '/zones', '/keys', '/dry-run', '/pipeline-health']) {
        const response = await fetch(url + path);
        assert.equal(response.status, 200, path);
        assert.equal(response.headers.get('content-security-policy'), POLICY);
        assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
        const text = await response.text();
        assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|https?:/);
        const assets = [...text.matchAll(/(?:src|href)="(?!#)([^"]+)"/g)].map((match) => match[1]!);
        const early = [...text.matchAll(/rel="modulepreload" href="([^"]+)"/g)].map(([, m]) => m!);
        assert.equal(assets.length - early.length, 6);
        if (path !== '/') continue;
        for (const asset of assets) {
          const loaded = await fetch(new URL(asset, `${url}/`));
          assert.equal(loaded.status, 200, asset);
          assert.match(loaded.headers.get('content-type')!, /^(?:text\/(?:css|javascript)|image)/);
          assert.equal(loaded.headers.get('x-content-type-options'), 'nosniff');
          // No module is found only when another has come.
          for (const [, module] of (await loaded.text()).matchAll(/ from '\.\/([\w-]+\.js)'/g)) {
            assert.ok(early.includes(`static/${module}`), `${asset} imports ${module}`);
          }
          const headers = { 'If-None-Match': loaded.headers.get('etag')! };
          assert.equal((await fetch(new URL(asset, `${url}/`), { headers })).status, 304);
        }
      }
    },
  );

  await t.test('serves no other file', async () => {
    for (const path of ['/static/', '/static/../package.json', '/static/%2e%2e%2fpackage.json']) {
      assert.equal((await head(url + path)).statusCode, 404, path);
    }
  });

  await t.test('answers for the store that it holds', async () => {
    const answer = await fetch(`${url}/api/panel/overview-totals`);
    const { rows } = (await answer.json()) as PanelAnswer;
    assert.deepEqual(rows[0]!.slice(0, 3), [3474, 422, 464]);
    const report = await mustRun(['report', '--store', store, '--format', 'json']);
    assert.match(report.stdout, /"requests":3474/);
  });

  child.kill('SIGTERM');
  assert.deepEqual((await ended).code, 0);
});

test('serve refuses what is no store, and asks for a login where one is set', async (t) => {
  const dir = makeTempDir(t);
  const nothing = await runCli(['serve', '--store', join(dir, 'none'), '--listen', '127.0.0.1:0']);
  assert.equal(nothing.code, 66);
  assert.match(nothing.stderr, /none: expected a limitlens store, found nothing/);

  const store = join(dir, 'store');
  await mustRun(['import', '--conf', 'samples/nginx.conf', '--store', store, 'samples/access.log']);
  const token = 'a-token-that-is-long-enough';
  writeFileSync(join(dir, 'token'), `${token}\n`);
  const child = started(t, [
    ...['serve', '--store', store, '--listen', '127.0.0.1:0'],
    ...['--http-token-file', join(dir, 'token')],
  ]);
  const ended = finished(child);
  const url = await said(child.stdout!, /^(http:\/\/127\.0\.0\.1:\d+)\/\n/);
  for (const path of ['/', '/api/span', '/static/main.js']) {
    assert.equal((await head(url + path)).statusCode, 401, path);
    const allowed = await fetch(url + path, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal(allowed.status, 200, path);
    await allowed.text();
  }
  child.kill('SIGINT');
  assert.equal((await ended).code, 0);
});

test('the daemon serves the page of what it follows', async (t) => {
  const dir = makeTempDir(t);
  const log = join(dir, 'access.log');
  cpSync('samples/access.log', log);
  const child = started(t, [
    ...['tail', '--conf', 'samples/nginx.conf', '--store', join(dir, 'store')],
    ...['--listen', '127.0.0.1:0', '--commit-interval', '100ms', '--lateness', '1s', log],
  ]);
  const ended = finished(child);
  const url = await said(child.stderr!, /"url":"(http:\/\/127\.0\.0\.1:\d+)"/);
  const page = await fetch(`${url}/`);
  assert.equal(page.headers.get('content-security-policy'), POLICY);
  await page.text();
  // News come by themselves, until all but the last second is decided.
  const stop = new AbortController();
  const live = await fetch(`${url}/api/live`, { signal: stop.signal });
  const stream = live.body!.pipeThrough(new TextDecoderStream()).getReader();
  let requests = 0;
  while (requests < 3000) {
    const { done } = await stream.read();
    assert.ok(!done);
    const answer = await fetch(`${url}/api/panel/overview-totals?from=first&to=last`);
    requests = Number(((await answer.json()) as PanelAnswer).rows[0]![0]);
  }
  stop.abort();
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});
