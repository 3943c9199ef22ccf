/**
 * The follower beside the real logrotate: a writer that, as nginx does, writes on into the renamed
 * file until it is told to reopen, and a follower that runs all the time, is polled rarely, or is
 * down while logrotate runs.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { FollowedLog } from '../src/input/follow.js';
import type { LogProgress, OnLine } from '../src/input/follow-progress.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

const ROUNDS = 4;
/** After the last rotation before, so that the next one finds its name free. */
const DAY_OF_ROUND = ['20260301', '20260302', '20260303', '20260304'];

type Follower = 'polled all the time' | 'polled once a rotation' | 'down at rotation';

interface Site {
  readonly path: string;
  readonly written: string[];
  readonly given: string[];
  rotate(): void;
}

function makeSite(t: TestContext, directives: string): Site {
  const folder = makeTempDir(t);
  const path = join(folder, 'access.log');
  const conf = join(folder, 'logrotate.conf');
  fs.writeFileSync(conf, `${path} {\n  rotate 10\n  missingok\n  ${directives}\n}\n`);
  fs.chmodSync(conf, 0o644);
  const program = requireProgram('logrotate');
  const rotate = (): void => {
    execFileSync(program, ['-f', '-s', join(folder, 'state'), conf], { stdio: 'pipe' });
  };
  return { path, written: [], given: [], rotate };
}

function append(site: Site, fd: number, count: number): void {
  let text = '';
  for (let i = 0; i < count; i++) {
    const line = `192.0.2.7 - - "GET /${site.written.length} HTTP/1.1" 200`;
    site.written.push(line);
    text += `${line}\n`;
  }
  fs.writeSync(fd, text);
}

async function followThrough(
  site: Site,
  follower: Follower,
  isCopied: boolean,
  between: (round: number) => void,
): Promise<FollowedLog> {
  let progress: LogProgress[] = [];
  let log = new FollowedLog(site.path);
  const onLine: OnLine = (bytes, start, end) => {
    site.given.push(Buffer.from(bytes.subarray(start, end)).toString('latin1'));
  };
  const pollOften = async (): Promise<void> => {
    if (follower === 'polled all the time') await log.poll(onLine);
  };
  let fd = fs.openSync(site.path, 'a');
  for (let round = 0; round < ROUNDS; round++) {
    append(site, fd, 50);
    await log.poll(onLine);
    append(site, fd, 50);
    if (follower === 'down at rotation') {
      progress = JSON.parse(JSON.stringify(log.progress())) as LogProgress[];
      await log.close();
    }
    site.rotate();
    between(round);
    await pollOften();
    if (!isCopied) {
      append(site, fd, 50);
      await pollOften();
      fs.closeSync(fd);
      fd = fs.openSync(site.path, 'a');
    }
    append(site, fd, 50);
    if (follower === 'down at rotation') log = new FollowedLog(site.path, { known: progress });
  }
  while (await log.poll(onLine));
  fs.closeSync(fd);
  return log;
}

const CONFIGURATIONS = [
  { directives: 'create', isCopied: false },
  { directives: 'nocreate', isCopied: false },
  { directives: 'create\n  compress\n  delaycompress', isCopied: false },
  { directives: 'create\n  dateext', isCopied: false },
  { directives: 'create\n  dateext\n  compress\n  delaycompress', isCopied: false },
  { directives: 'copytruncate', isCopied: true },
  { directives: 'copytruncate\n  compress', isCopied: true },
  { directives: 'copytruncate\n  compress\n  delaycompress', isCopied: true },
] as const;
const FOLLOWERS = ['polled all the time', 'polled once a rotation', 'down at rotation'] as const;

for (const { directives, isCopied } of CONFIGURATIONS) {
  for (const follower of FOLLOWERS) {
    test(`${directives.replaceAll(/\n\s*/g, ', ')}; follower ${follower}`, async (t) => {
      const site = makeSite(t, directives);
      // Each rotation is a day of its own: today's name is given an earlier date.
      const between = (round: number): void => {
        const folder = join(site.path, '..');
        for (const name of fs.readdirSync(folder)) {
          const match = /^(access\.log-)(\d{8})(.*)$/.exec(name);
          if (match === null || DAY_OF_ROUND.includes(match[2]!)) continue;
          const renamed = `${match[1]}${DAY_OF_ROUND[round]}${match[3]}`;
          fs.renameSync(join(folder, name), join(folder, renamed));
        }
      };
      const log = await followThrough(site, follower, isCopied, between);
      assert.deepEqual(site.given, site.written);
      assert.equal(log.counters.lostBytes, 0);
      assert.equal(log.counters.lostLogs, 0);
      assert.equal(log.lagBytes, 0);
      if (follower !== 'down at rotation') {
        const changes = isCopied ? log.counters.truncations : log.counters.rotations;
        assert.equal(changes, ROUNDS);
      }
      await log.close();
    });
  }
}
