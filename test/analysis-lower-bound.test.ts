/**
 * What no given log shows: `access_log off`, `if=`, logs that were not given.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { lowerBounds, type IsGiven } from '../src/analysis/lower-bound.js';
import { loadConf } from '../src/input/conf-files.js';
import { makeTempDir } from './support/temp-dir.js';

const HEAD = `events {}
http {
limit_req_zone $remote_addr zone=a:1m rate=1r/s;
limit_req_zone $remote_addr zone=b:1m rate=1r/s;
map $status $loud { ~^4 1; default 0; }
`;

const cases: readonly [title: string, body: string, given: string[], expected: string[]][] = [
  ['all is logged', 'server { limit_req zone=a; access_log /l/x; }', ['/l/x'], []],
  [
    'access_log off over a limit',
    'server { limit_req zone=a; access_log /l/x;\nlocation /s { access_log off; } }',
    ['/l/x'],
    ['a 7 access_log off: requests of location /s of the server without a name are in no log'],
  ],
  [
    'access_log off over a limit of another zone',
    'server { access_log /l/x; limit_req zone=a;\nlocation /s { limit_req zone=b; access_log off; } }',
    ['/l/x'],
    ['b 7 access_log off: requests of location /s of the server without a name are in no log'],
  ],
  [
    'access_log off where nothing is limited',
    'server { limit_req zone=a; access_log /l/x; }\nserver { access_log off; }',
    ['/l/x'],
    [],
  ],
  [
    'access_log off over a limit that a return hides',
    'server { limit_req zone=a; access_log /l/x;\nlocation /s { access_log off; return 204; } }',
    ['/l/x'],
    [],
  ],
  [
    'a condition',
    'server { server_name s; limit_req zone=a;\naccess_log /l/x combined if=$loud; }',
    ['/l/x'],
    ['a 7 if=$loud: the log leaves out requests of server s'],
  ],
  [
    'a condition beside a log without one',
    'server { limit_req zone=a; access_log /l/x combined if=$loud; access_log /l/y; }',
    ['/l/x', '/l/y'],
    [],
  ],
  [
    'a condition, and the log without one not given',
    'server { server_name s; limit_req zone=a; access_log /l/x combined if=$loud; access_log /l/y; }',
    ['/l/x'],
    ['a 6 if=$loud: the log leaves out requests of server s'],
  ],
  [
    'a log that was not given',
    'server { server_name s; limit_req zone=a; access_log /l/x; }\n' +
      'server { server_name t; limit_req zone=a; limit_req zone=b; access_log /l/y; }',
    ['/l/x'],
    [
      'a 7 /l/y was not given: it holds the requests of server t',
      'b 7 /l/y was not given: it holds the requests of server t',
    ],
  ],
  [
    'one of two logs of the same requests',
    'access_log /l/x; access_log /l/y; server { limit_req zone=a; }',
    ['/l/y'],
    [],
  ],
];

function among(paths: readonly string[]): IsGiven {
  return (path) => paths.includes(path);
}

for (const [title, body, given, expected] of cases) {
  test(`lower bound: ${title}`, (t) => {
    const path = join(makeTempDir(t), 'nginx.conf');
    writeFileSync(path, `${HEAD}${body}\n}\n`);
    const found = [...lowerBounds([loadConf(path)], among(given))].flatMap(([zone, reasons]) =>
      reasons.map(({ file, line, why }) => {
        assert.equal(file, path);
        return `${zone} ${line} ${why}`;
      }),
    );
    assert.deepEqual(found, expected);
  });
}

const ST = 'test/fixtures/st/nginx.conf';

test('fixture st: its access_log off is over a server that limits nothing', () => {
  assert.deepEqual([...lowerBounds([loadConf(ST)], () => true)], []);
});

test('fixture st without its log: every zone that is in use is a lower bound', () => {
  const found = lowerBounds([loadConf(ST)], () => false);
  assert.deepEqual([...found.keys()].sort(), ['rz', 'rz2', 'rz3']);
  for (const reasons of found.values()) {
    assert.ok(reasons.every(({ file, line }) => file === ST && line === 17));
  }
});

test('each configuration that was in force counts', (t) => {
  const directory = makeTempDir(t);
  const paths = ['access_log off', 'access_log /l/x'].map((directive, i) => {
    const path = join(directory, `${i}.conf`);
    writeFileSync(path, `${HEAD}server { limit_req zone=a; ${directive}; }\n}\n`);
    return path;
  });
  const found = lowerBounds(
    paths.map((path) => loadConf(path)),
    () => true,
  );
  assert.deepEqual(found.get('a')?.map(({ file }) => file), [paths[0]]); // prettier-ignore
});
