/**
 * checkConf() over every configuration of the repository, and its output as text and as JSON.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseConf } from '../parsers/conf/read-conf.js';
import { checkConf } from '../src/check/check-conf.js';
import { CODES } from '../src/check/codes.js';
import { type Finding, SEVERITIES } from '../src/check/finding.js';
import { findingsJson, findingsText } from '../src/check/findings-text.js';
import { loadConf } from '../src/input/conf-files.js';
import { captureDirectories } from './support/captures.js';

/** Lines that a code points at. */
function linesOf(findings: readonly Finding[], code: string): readonly number[] {
  return findings.filter((found) => found.code === code).map(({ where }) => where!.line);
}

function check(text: string, path = 'nginx.conf'): readonly Finding[] {
  return checkConf(
    parseConf(path, { read: (wanted) => (wanted === path ? text : undefined), glob: () => [] }),
  );
}

const CONFIGURATIONS = [
  'samples/nginx.conf',
  ...captureDirectories().flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => /^nginx\.conf(?:\.\d)?$/.test(name))
      .map((name) => join(directory, name)),
  ),
  // Recorded for nginx's refusal of it: one name for two kinds of zone.
].filter((path) => path !== 'test/fixtures/reload/nginx.conf');

test('every configuration of the repository is checked, with places in it and known codes', () => {
  assert.ok(CONFIGURATIONS.length > 20);
  for (const path of CONFIGURATIONS) {
    const findings = checkConf(loadConf(path));
    assert.ok(findings.length > 0, path);
    for (const { code, severity, where, message, why } of findings) {
      assert.ok(Object.hasOwn(CODES, code));
      assert.ok(SEVERITIES.includes(severity));
      assert.equal(where?.path, path);
      assert.ok(where.line > 0);
      assert.ok(
        message !== '' && !message.includes('undefined') && !message.endsWith('.'),
        message,
      );
      assert.ok(why.startsWith(CODES[code]));
    }
  }
});

test('the most severe first, then by line; and the same twice', () => {
  for (const path of CONFIGURATIONS) {
    const findings = checkConf(loadConf(path));
    const order = findings.map(({ severity, where }) => {
      return SEVERITIES.indexOf(severity) * 10_000 + where!.line;
    });
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
      path,
    );
    assert.deepEqual(checkConf(loadConf(path)), findings);
  }
});

test('samples/nginx.conf: its format has all that a replay needs, its limits have their faults', () => {
  const findings = checkConf(loadConf('samples/nginx.conf'));
  assert.deepEqual(linesOf(findings, 'log-format-lacks-fields'), []);
  assert.deepEqual(linesOf(findings, 'key-client-controlled'), [20]);
  assert.deepEqual(linesOf(findings, 'limits-not-inherited'), [42]);
  assert.deepEqual(linesOf(findings, 'zone-too-small'), [21]);
  assert.deepEqual(linesOf(findings, 'dry-run-on'), [38]);
  assert.deepEqual(linesOf(findings, 'return-before-limit'), [52]);
});

test('the formats of the traces lack nothing, those of the fixtures do', () => {
  for (const path of CONFIGURATIONS.filter((each) => each.includes('/traces/'))) {
    assert.deepEqual(linesOf(checkConf(loadConf(path)), 'log-format-lacks-fields'), [], path);
  }
  assert.deepEqual(
    linesOf(checkConf(loadConf('test/fixtures/st/nginx.conf')), 'log-format-lacks-fields'),
    [17],
  );
});

test('lists that every server replaces are not taken for another level', () => {
  const own = (n: number): string =>
    `server { listen ${n};\nlimit_req zone=z${n};\nlocation / { }\n}`;
  const zones = [1, 2]
    .map((n) => `limit_req_zone $server_name zone=z${n}:1m rate=9r/s;`)
    .join('\n');
  const findings = check(`events {}\nhttp {\n${zones}\n${own(1)}\n${own(2)}\n}`);
  assert.deepEqual(linesOf(findings, 'limits-not-inherited'), []);
});

test('a list of http is known by its place when one server alone inherits it', () => {
  const zones = ['all', 'b'].map((n) => `limit_req_zone $server_name zone=${n}:1m rate=9r/s;`);
  const inherits = 'server { listen 1; }';
  const replaces = 'server { listen 2;\nlimit_req zone=b;\n}';
  const list = 'limit_req zone=all;';
  const before = check(['events {}', 'http {', ...zones, list, inherits, replaces, '}'].join('\n'));
  assert.deepEqual(linesOf(before, 'limits-not-inherited'), [8]);
  const behind = check(['events {}', 'http {', ...zones, inherits, replaces, list, '}'].join('\n'));
  assert.deepEqual(linesOf(behind, 'limits-not-inherited'), [7]);
});

test('a configuration without limits has nothing to remark', () => {
  const findings = check('events {}\nhttp {\nserver { listen 80;\naccess_log off;\n}\n}\n');
  assert.deepEqual(findings, []);
  assert.equal(findingsText(findings), 'Nothing to remark.\n');
  assert.equal(findingsJson(findings), '{\n  "findings": []\n}\n');
});

test('maps that go in circles end', () => {
  const text = `events {}\nhttp {
    map $a $b { default $a; }
    map $b $a { default $b; }
    limit_req_zone $a zone=k:1m rate=1r/s;
    server { limit_req zone=k burst=1 nodelay; } }`;
  assert.ok(
    check(text).some(({ code, message }) => {
      return code === 'not-evaluated' && message.includes('is defined by itself');
    }),
  );
});

const NAUGHTY = `events {}
http {
  limit_req_zone $arg_k "zone=z\u009b31m\u00c3\u00a9:10m" rate=1r/s;
  server { listen 80; limit_req "zone=z\u009b31m\u00c3\u00a9" burst=1; }
}
`;

test('text: a place, a severity and a code in a line, then the reason once, then what to write', () => {
  const [first, ...others] = findingsText(check(NAUGHTY, 'a\nb.conf')).split('\n\n');
  const lines = first!.split('\n');
  assert.equal(
    lines[0],
    'a\\u000ab.conf:3: warning: the key $arg_k of zone "z\\u009b31m\u00c3\u00a9" can be empty, and no other limit holds it [key-can-be-empty]',
  );
  assert.match(lines[1]!, /^ {4}nginx skips a zone/);
  assert.match(lines.at(-1)!, /^ {2}\+ limit_req_zone .* {2}# instead of a\?b\.conf:3$/);
  assert.ok(lines.slice(1, -2).every((line) => line.length <= 80));
  assert.match(others.at(-1)!, /^\d+ warnings, \d+ info\.\n$/);
});

test('text: bytes that are UTF-8 are shown as its characters, and in JSON as well', () => {
  const findings = check(NAUGHTY.replaceAll('\u009b', ''));
  assert.match(findingsText(findings), /zone "z31mé" can be empty/);
  const parsed = JSON.parse(findingsJson(findings)) as { findings: Finding[] };
  assert.deepEqual(parsed.findings, findings);
  assert.match(parsed.findings[0]!.message, /zone "z31mé"/);
});

test('text: a reason that several findings share is given once', () => {
  const zones = ['a', 'b'].map((n) => `limit_conn_zone $server_name zone=${n}:1m;`).join('\n');
  const text = findingsText(check(`events {}\nhttp {\n${zones}\n}\n`));
  assert.equal(text.split(CODES['zone-unused'].slice(0, 40)).length, 2);
  assert.match(text, /\n2 warnings\.\n$/);
});
