/**
 * What the README shows is what the commands print.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLI } from './support/agreement.js';
import { makeTempDir } from './support/temp-dir.js';

const README = readFileSync('README.md', 'utf8');

/** The lines between `<!-- name -->` and `<!-- /name -->`, without the fence. */
function block(name: string): string {
  const match = new RegExp(`<!-- ${name} -->\n([^]*?)<!-- /${name} -->`).exec(README);
  assert.ok(match, `README.md has no block ${name}`);
  return match[1]!.replace(/^```.*\n/gm, '').trim();
}

function run(...args: string[]): string {
  const done = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

test('the first screen shows what the demo prints', (t) => {
  const store = join(makeTempDir(t), 'demo');
  const logs = ['--conf', 'samples/nginx.conf', 'samples/access.log', 'samples/error.log'];
  const imported = run(CLI, 'import', '--store', store, ...logs);
  const report = run(CLI, 'report', '--store', store);
  assert.equal(block('demo'), `${imported}${report}`.trim());
});

test('the demo of package.json is the one of the README', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    scripts: Record<string, string>;
  };
  assert.match(
    scripts['demo']!,
    /^node dist\/src\/cli\.js import --conf samples\/nginx\.conf --store \S+ samples\/access\.log samples\/error\.log && node dist\/src\/cli\.js report --store \S+$/,
  );
});

test('the table of agreement is the one that is measured', () => {
  const table = new URL('./support/agreement-table.js', import.meta.url).pathname;
  const measured = run(table).trim().split('\n');
  const shown = block('agreement').split('\n');
  const cells = (row: string): string[] =>
    row
      .split('|')
      .map((cell) => cell.trim().replace(/^-+$/, '---'))
      .filter((cell) => cell !== '');
  assert.deepEqual(shown.map(cells), measured.map(cells));
});

test('every command that the README names exists', () => {
  const help = run(CLI, '--help');
  for (const match of README.matchAll(/`limitlens ([a-z-]+)/g)) {
    assert.match(help, new RegExp(`^  ${match[1]}\\b`, 'm'), match[0]);
  }
});
