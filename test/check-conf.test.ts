/**
 * checkConf(): for every code a configuration that has the fault, and one that has not; and what
 * the fixes are worth, asked of a real nginx and of checkConf() itself.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkConf } from '../src/check/check-conf.js';
import { type CheckCode, CODES } from '../src/check/codes.js';
import type { Finding } from '../src/check/finding.js';
import type { CheckOptions } from '../src/check/survey.js';
import { applyFix, type Case, complete, read } from './support/check-cases.js';
import { RULE_CASES } from './support/check-rule-cases.js';
import { ZONE_CASES } from './support/check-zone-cases.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

const CASES: readonly Case[] = [...ZONE_CASES, ...RULE_CASES];

function findingsOf(text: string, { code }: Case, options?: CheckOptions): readonly Finding[] {
  return checkConf(read(text), options).filter((found) => found.code === code);
}

test('every code has a case', () => {
  const covered = new Set(CASES.map(({ code }) => code));
  assert.deepEqual([...covered].sort(), Object.keys(CODES).sort());
});

for (const each of CASES) {
  const { code, severity, says, options } = each;
  test(`${code} (${severity}): ${says.source}`, () => {
    const text = complete(each.bad);
    const line = text.split('\n').findIndex((one) => one.includes('#!')) + 1;
    const found = findingsOf(text, each, options);
    const [first] = found.filter((one) => says.test(one.message));
    assert.ok(first, `no such message in ${JSON.stringify(found)}`);
    assert.deepEqual(first.where, { path: 'nginx.conf', line });
    assert.equal(first.severity, severity);
    assert.ok(first.why.startsWith(CODES[code]));

    const without = findingsOf(complete(each.good), each, options);
    assert.deepEqual(
      without.filter((one) => says.test(one.message)),
      [],
    );
    // A good case may have the code for another reason, never with this weight.
    assert.ok(without.every((one) => one.severity !== severity));
  });
}

const FIXED = CASES.flatMap((each) => {
  const text = complete(each.bad);
  return checkConf(read(text), each.options)
    .filter(
      ({ code, fix, message }) => code === each.code && fix !== null && each.says.test(message),
    )
    .map((found) => ({ each, text, found, fixed: applyFix(text, found) }));
});

test('every code that has a line to write shows it in a case', () => {
  const without: CheckCode[] = ['not-evaluated', 'return-before-limit', 'zone-unused'];
  const codes = new Set(FIXED.map(({ found }) => found.code));
  assert.deepEqual(
    [...codes].sort(),
    Object.keys(CODES)
      .filter((c) => !without.includes(c as CheckCode))
      .sort(),
  );
});

for (const { each, text, found, fixed } of FIXED) {
  test(`what ${found.code} says to write is a cure: ${found.message}`, () => {
    const count = (conf: string, options: CheckOptions | undefined): number =>
      findingsOf(conf, each, options).filter((one) => one.severity === found.severity).length;
    // With another key, the lengths that were seen are no longer those of the zone.
    const after = found.code === 'mixed-key-lengths' ? undefined : each.options;
    assert.ok(count(fixed, after) < count(text, each.options), fixed);
  });
}

test('nginx -t accepts every fix where it says it goes', (t) => {
  const dir = makeTempDir(t);
  const nginx = requireProgram('nginx');
  for (const { fixed, found } of FIXED) {
    // The folder of the packaged nginx may be closed to the tests.
    const here = fixed
      .replaceAll('/var/log/nginx/', '')
      .replaceAll('unix:web.sock', `unix:${dir}/s`);
    writeFileSync(join(dir, 'nginx.conf'), `pid nginx.pid;\n${here}`, 'latin1');
    const args = ['-t', '-p', dir, '-c', 'nginx.conf', '-e', 'error.log'];
    const { status, stderr } = spawnSync(nginx, args, { encoding: 'latin1' });
    assert.equal(status, 0, `${found.code}: ${stderr}\n${here}`);
  }
});
