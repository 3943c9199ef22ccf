/**
 * `limitlens top` in a real terminal: it fits, follows its size, and gives everything back at the end.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { openStore } from '../src/store/store.js';
import { columnsOf } from '../src/store/tables.js';
import { CLI } from './support/agreement.js';
import { mustRun } from './support/cli.js';
import { Terminal } from './support/terminal.js';

const ROWS = 24;
const COLUMNS = 80;
const ENV = { TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', NO_COLOR: '' };

void suite('top in a terminal', { timeout: 600_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'limitlens-'));
  after(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, 'store');

  before(async () => {
    const logs = ['samples/access.log', 'samples/error.log'];
    await mustRun(['import', '--conf', 'samples/nginx.conf', '--store', path, ...logs]);
    const store = await openStore({ path, createIfMissing: false });
    const keys = ['\u001b[2J\u001b[31;1H', '\u202ekey\r\n', '中文'.repeat(100)];
    const rows = keys.map((key) => {
      return [
        'default',
        'login',
        key,
        Date.parse('2026-11-30T08:14:00Z') / 1000,
        1,
        0,
        900,
        0,
        0,
        0,
        7,
        6,
        8,
      ];
    });
    await store.insertBlock({ table: 'key_minutes', columns: columnsOf('key_minutes'), rows }, 'x');
    await store.close();
  });

  /** Between two words of stty, which has to find the terminal as it was. */
  function start(t: { after(fn: () => void): void }, args = '--interval 1h'): Terminal {
    const top = `sh -c 'echo pid=$$; exec ${process.execPath} ${CLI} top --store ${path} ${args}'`;
    const command = `echo before=$(stty -g); ${top}; echo code=$?; echo after=$(stty -g)`;
    const terminal = new Terminal(command, ROWS, COLUMNS, ENV);
    t.after(() => {
      terminal.kill();
    });
    return terminal;
  }

  async function assertGivenBack(terminal: Terminal, code: number): Promise<void> {
    assert.equal(await terminal.ended, 0);
    const { shown } = terminal;
    assert.deepEqual([shown.isAlternate, shown.hasCursor, shown.wraps], [false, true, true]);
    const word = (name: string): string | undefined =>
      new RegExp(`${name}=(\\S+)`).exec(shown.normal)?.[1];
    assert.equal(word('code'), String(code), shown.normal);
    assert.ok(word('before') !== undefined && word('before') !== '');
    assert.equal(word('after'), word('before'));
    assert.doesNotMatch(shown.normal, /ZONE|requests\/s|Error/);
  }

  const hasNumbers = (terminal: Terminal): Promise<void> =>
    terminal.until(({ lines }) => lines.some((line) => /^login .* 3\.38/.test(line)));

  test('draws a frame that fits, follows its size, and takes keys', async (t) => {
    const terminal = start(t);
    await hasNumbers(terminal);
    const { shown } = terminal;
    assert.deepEqual([shown.isAlternate, shown.hasCursor, shown.wraps], [true, false, false]);
    await terminal.until(
      ({ lines }) => lines.length === ROWS || /^q quit/.test(lines.at(-1) ?? ''),
    );
    assert.ok(terminal.fits(ROWS, COLUMNS), shown.lines.join('\n'));
    assert.ok(shown.lines.some((line) => line.endsWith('login   \\u001b[2J\\u001b[31;1H')));

    terminal.resize(10, 40);
    await terminal.until(() => terminal.fits(10, 40));
    assert.match(shown.lines.at(-1)!, /^q quit/);
    terminal.resize(50, 160);
    await terminal.until(({ lines }) => lines.some((line) => line.includes('HEADROOM')));
    assert.ok(terminal.fits(50, 160));

    terminal.type('s');
    await terminal.until(({ lines }) =>
      lines.some((line) => /KEY, since .* by excess$/.test(line)),
    );
    terminal.type('\u001a'); // Ctrl-Z, with no shell that could take over
    await terminal.until(({ alternated, lines }) => alternated === 2 && /^q/.test(lines.at(-1)!));
    terminal.type(' ');
    await terminal.until(({ lines }) => lines.at(-1)!.endsWith('space go on'));
    terminal.type('q');
    await assertGivenBack(terminal, 0);
  });

  test('gives the terminal back after Ctrl-C', async (t) => {
    const terminal = start(t);
    await hasNumbers(terminal);
    terminal.type('\u0003');
    await assertGivenBack(terminal, 0);
  });

  test('gives the terminal back after SIGTERM', async (t) => {
    const terminal = start(t);
    await hasNumbers(terminal);
    process.kill(Number(/pid=(\d+)/.exec(terminal.shown.normal)![1]), 'SIGTERM');
    await assertGivenBack(terminal, 0);
  });

  test('gives the terminal back when there is no store', async (t) => {
    const terminal = start(t, `--database none`);
    await terminal.ended;
    const { shown } = terminal;
    assert.deepEqual([shown.isAlternate, shown.hasCursor, shown.wraps], [false, true, true]);
    assert.match(shown.normal, /code=66/);
  });

  test('leaves the store to others between two looks, and waits while they have it', async (t) => {
    const terminal = start(t, '--interval 500ms --instance edge');
    await terminal.until(({ lines }) => lines.some((line) => line.includes('no requests yet')));
    let store: Awaited<ReturnType<typeof openStore>> | undefined;
    while (store === undefined) {
      store = await openStore({ path, createIfMissing: false }).catch(() => undefined);
    }
    await terminal.until(({ lines }) => lines.some((line) => /in use|another process/.test(line)));
    assert.ok(terminal.shown.lines.some((line) => line.includes('no requests yet')));
    const rows = [['edge', 's', '/', Date.parse('2026-11-30T08:14:00Z') / 1000, 200, '', '', 600]];
    await store.insertBlock({ table: 'responses', columns: columnsOf('responses'), rows }, 'y');
    await store.close();
    await terminal.until(({ lines }) => lines.some((line) => line.startsWith('10.00 requests/s')));
    assert.ok(!terminal.shown.lines.some((line) => /in use|another process/.test(line)));
    terminal.type('q');
    await assertGivenBack(terminal, 0);
  });
});
