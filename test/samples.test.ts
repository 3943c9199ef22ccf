/**
 * samples/ is what the recorder writes and what its README says.
 */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { countOutcomes } from './support/sample-readme.js';
import { SITE_CONF } from './support/sample-site.js';

const accessLog = readFileSync('samples/access.log', 'latin1');
const errorLog = readFileSync('samples/error.log', 'latin1');

test('samples/nginx.conf is the configuration that the recorder runs', () => {
  assert.equal(readFileSync('samples/nginx.conf', 'utf8'), SITE_CONF);
});

test('samples/README.md counts what samples/access.log holds', () => {
  const readme = readFileSync('samples/README.md', 'utf8');
  const table = readme.split('\n').filter((line) => /^\| \S+\.example /.test(line));
  const counted = [...countOutcomes(accessLog)].map(([row, n]) => `| ${row} | ${n} |`);
  assert.deepEqual(table, counted);
  const requests = accessLog.trimEnd().split('\n').length;
  assert.match(readme, new RegExp(`: ${requests} requests\n`));
});

test('samples/error.log has one line for each request that nginx says it limited', () => {
  const sentences = [
    [/ delaying request, excess/g, / lr=DELAYED /g],
    [/ limiting requests, excess/g, / lr=REJECTED /g],
    [/ limiting requests, dry run, excess/g, / lr=REJECTED_DRY_RUN /g],
    [/ limiting connections by/g, / lc=REJECTED /g],
  ] as const;
  for (const [inErrorLog, inAccessLog] of sentences) {
    const lines = errorLog.match(inErrorLog) ?? [];
    assert.equal(lines.length, accessLog.match(inAccessLog)?.length, inErrorLog.source);
  }
});

test('samples hold documentation addresses only, and stay small', () => {
  const clients = [
    ...[...accessLog.matchAll(/^(\S+) /gm)].map(([, client]) => client!),
    ...[...errorLog.matchAll(/, client: ([^,]+),/g)].map(([, client]) => client!),
  ];
  const documentation = /^(?:192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|2001:db8:|127\.0\.0\.1$)/;
  assert.deepEqual(
    clients.filter((client) => !documentation.test(client)),
    [],
  );
  const sizes = ['access.log', 'error.log'].map((name) => statSync(`samples/${name}`).size);
  assert.ok(sizes.every((bytes) => bytes > 0));
  assert.ok(sizes.reduce((sum, bytes) => sum + bytes) < 2_000_000);
});
