/**
 * A real Alertmanager, with one receiver: a webhook of the test.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { requireProgram } from './debian.js';
import { makeTempDir, type Cleanup } from './temp-dir.js';

/** As its API tells it, as far as tests look. */
export interface ShownAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly generatorURL: string;
}

export class Alertmanager {
  readonly url: string;

  private constructor(url: string) {
    this.url = url;
  }

  /** @param webhook where it tells of alerts, at once and only once a day again */
  static async start(t: Cleanup, webhook: string): Promise<Alertmanager> {
    const folder = makeTempDir(t);
    const config = {
      route: {
        receiver: 'test',
        group_by: ['...'],
        group_wait: '1ms',
        group_interval: '50ms',
        repeat_interval: '24h',
      },
      receivers: [{ name: 'test', webhook_configs: [{ url: webhook, send_resolved: true }] }],
    };
    // JSON is YAML.
    writeFileSync(join(folder, 'config.yml'), JSON.stringify(config));
    const child = spawn(
      requireProgram('prometheus-alertmanager'),
      [
        `--config.file=${join(folder, 'config.yml')}`,
        `--storage.path=${join(folder, 'data')}`,
        '--web.listen-address=127.0.0.1:0',
        '--cluster.listen-address=',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    t.after(async () => {
      const exit = once(child, 'exit');
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await exit;
    });
    let said = '';
    for await (const line of createInterface({ input: child.stderr })) {
      said += `${line}\n`;
      const [, address] = /"?Listening on"? address=(127\.0\.0\.1:\d+)/.exec(line) ?? [];
      if (address === undefined) continue;
      child.stderr.resume();
      return new Alertmanager(`http://${address}`);
    }
    throw new Error(`Alertmanager did not start:\n${said}`);
  }

  async alerts(): Promise<readonly ShownAlert[]> {
    const response = await fetch(`${this.url}/api/v2/alerts`);
    return (await response.json()) as readonly ShownAlert[];
  }
}
