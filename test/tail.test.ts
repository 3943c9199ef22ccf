/**
 * `limitlens tail` as a process: what it serves, how it ends, what it refuses.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const CLI = join(dirname(fileURLToPath(import.meta.url)), '../src/cli.js');

interface Said {
  readonly level: string;
  readonly message: string;
  readonly port?: number;
}

class Daemon {
  readonly child: ChildProcess;
  readonly #said: Said[] = [];

  constructor(t: TestContext, folder: string, ...args: string[]) {
    const conf = join(traceDir('e_two_zones'), 'nginx.conf');
    const store = ['--store', join(folder, 'store'), '--listen', '127.0.0.1:0'];
    this.child = spawn(
      process.execPath,
      [
        CLI,
        'tail',
        '--conf',
        conf,
        '--timezone',
        'UTC',
        '--commit-interval',
        '50ms',
        ...store,
        ...args,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    t.after(() => this.child.kill('SIGKILL'));
    createInterface({ input: this.child.stderr! }).on('line', (line) => {
      this.#said.push(JSON.parse(line) as Said);
      this.child.emit('said');
    });
  }

  async said(message: string): Promise<Said> {
    for (;;) {
      const found = this.#said.find((said) => said.message === message);
      if (found !== undefined) return found;
      await once(this.child, 'said');
    }
  }

  async end(signal: NodeJS.Signals): Promise<unknown> {
    const exit = once(this.child, 'exit');
    this.child.kill(signal);
    return (await exit)[0];
  }
}

function siteOf(t: TestContext): { folder: string; logs: string[] } {
  const folder = makeTempDir(t);
  for (const name of ['access.log', 'error.log']) {
    copyFileSync(join(traceDir('e_two_zones'), name), join(folder, name));
  }
  return { folder, logs: ['--error-log', join(folder, 'error.log'), join(folder, 'access.log')] };
}

test('serves metrics that begin at zero and count what was stored; drains on SIGTERM', async (t) => {
  const { folder, logs } = siteOf(t);
  const daemon = new Daemon(t, folder, '--lateness', '1s', ...logs);
  const { port } = await daemon.said('listens');
  const get = async (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
  assert.equal((await get('/healthz')).status, 200);
  await daemon.said('stored');
  assert.equal((await get('/readyz')).status, 200);
  assert.equal((await get('/nothing')).status, 404);
  const text = await (await get('/metrics')).text();
  assert.match(text, /^# TYPE limitlens_limit_req_requests_total counter$/m);
  assert.match(
    text,
    /^limitlens_responses_total\{code="503",source="upstream",instance="default"\} 0$/m,
  );
  assert.match(text, /^limitlens_build_info\{version="[\d.]+",instance="default"\} 1$/m);
  assert.match(text, /^limitlens_lines_total\{kind="access",instance="default"\} \d+$/m);
  assert.equal(await daemon.end('SIGTERM'), 0);
  await daemon.said('drained');
});

test('a log that is neither there nor in the configuration is refused', async (t) => {
  const folder = makeTempDir(t);
  const conf = join(traceDir('e_two_zones'), 'nginx.conf');
  const args = ['tail', '--conf', conf, '--store', join(folder, 's'), join(folder, 'other.txt')];
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => (said += String(data)));
  const [code] = (await once(child, 'close')) as [number];
  assert.equal(code, 66);
  assert.match(
    said,
    /other\.txt: expected a log with lines, or an access_log of the configuration/,
  );
});
