/**
 * Imports that are stopped by a signal, and a log long enough for that.
 */
import { rmSync } from 'node:fs';
import { openStore } from '../../src/store/store.js';
import { finished, startCli, type CliRun } from './cli.js';
import type { Imports } from './imports.js';

export const CONF = `events {}
http {
  log_format replay '$msec $request_time $status $limit_req_status $remote_addr $connection "$request"';
  access_log /var/log/nginx/access.log replay;
  limit_req_zone $remote_addr zone=ip:10m rate=2r/s;
  server { listen 80; server_name s; location / { limit_req zone=ip burst=3 nodelay; } }
}
`;

/** Lines of many clients: several blocks of rows before the end of the log is reached. */
export function manyLines(from: number, to: number): string {
  const lines: string[] = [];
  const startMs = Date.UTC(2026, 2, 2, 10);
  for (let n = from; n < to; n++) {
    const client = Math.imul(n, 2654435761) >>> 17;
    const seconds = ((startMs + 4 * n) / 1000).toFixed(3);
    const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`;
    lines.push(`${seconds} 0.001 200 PASSED ${address} ${n} "GET /${n % 7} HTTP/1.1"\n`);
  }
  return lines.join('');
}

export const LINES = 120_000;

/** Starts an import and stops it after a while, wherever it is then. */
export async function stopped(
  imports: Imports,
  logs: readonly string[],
  signal: NodeJS.Signals,
  afterMs: number,
): Promise<CliRun> {
  const child = startCli(imports.arguments(logs));
  const timer = setTimeout(() => child.kill(signal), afterMs);
  try {
    return await finished(child);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Kills an import between its beginning and its end, which takes a few attempts. No other store may be
 * open in this process meanwhile.
 */
export async function interrupt(imports: Imports, log: string): Promise<void> {
  // On a busy machine it begins late: each attempt lasts a share longer than the one before.
  let share = 1.6;
  for (let afterMs = 600; ; afterMs *= share) {
    await stopped(imports, [log], 'SIGKILL', afterMs);
    const store = await openStore({ path: imports.store, createIfMissing: true });
    const isDone = (await store.checkpoint('default')) !== undefined;
    const isPending = (await store.pendingIntent('default')) !== undefined;
    await store.close();
    if (isPending) return;
    if (!isDone) continue;
    // It was over before it was killed: once more from the beginning, in smaller steps.
    rmSync(imports.store, { recursive: true });
    afterMs /= share ** 2;
    share = Math.sqrt(share);
  }
}
