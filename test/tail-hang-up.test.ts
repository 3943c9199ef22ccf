/**
 * SIGHUP and limitlens.yaml: alerts, receivers, secrets and logins change while the daemon runs; what
 * can't change is named; a file that is no use leaves everything as it was.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { runCli } from './support/cli.js';
import { TailProcess } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';
import { WebhookReceiver, type Received } from './support/webhook-receiver.js';

type Sections = Record<string, Record<string, unknown>>;

class Site {
  readonly folder: string;
  readonly tail: TailProcess;
  readonly #yaml: string;

  /** @param access lines of the access log */
  constructor(t: TestContext, sections: Sections, access = '') {
    this.folder = makeTempDir(t);
    this.#yaml = this.path('limitlens.yaml');
    writeFileSync(
      this.path('nginx.conf'),
      `events {}
       http {
         log_format l '$remote_addr $msec $request_time $status $limit_req_status "$request" $uri';
         access_log ${this.path('access.log')} l;
         limit_req_zone $binary_remote_addr zone=perip:1m rate=1r/s;
         server {
           listen 80; server_name a.example; location / { limit_req zone=perip burst=1 nodelay; }
         }
       }\n`,
    );
    writeFileSync(this.path('access.log'), access);
    this.write(sections);
    this.tail = new TailProcess(['tail', '--config', this.#yaml]);
    t.after(() => this.tail.child.kill('SIGKILL'));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Sections of limitlens.yaml, beside or instead of the usual ones. */
  write(sections: Sections): void {
    const usual: Sections = {
      nginx: { conf: 'nginx.conf', instance: 'web1' },
      logs: { lateness: '1s' },
      store: { folder: 'store', commit_interval: '50ms' },
      http: { listen: '127.0.0.1:0' },
      alerts: { interval: 0 },
    };
    writeFileSync(this.#yaml, JSON.stringify({ ...usual, ...sections }));
  }

  /** @returns what it said since, up to the end of what SIGHUP does */
  async hangUp(): Promise<string> {
    const from = this.tail.said.length;
    this.tail.child.kill('SIGHUP');
    await this.tail.until('the nginx configuration has not changed', from);
    return this.tail.said.slice(from);
  }

  async metric(line: RegExp): Promise<void> {
    assert.match(await (await this.tail.get('/metrics')).text(), line);
  }
}

/** Three requests every ten seconds, of which the limit lets two through. */
function limited(fromMs: number, toMs: number): string {
  let text = '';
  const line = (ms: number, status: number, word: string): string =>
    `203.0.113.9 ${(ms / 1000).toFixed(3)} 0.000 ${status} ${word} "GET / HTTP/1.1" /\n`;
  for (let ms = fromMs; ms < toMs; ms += 10_000) {
    text +=
      line(ms, 200, 'PASSED') + line(ms + 100, 200, 'PASSED') + line(ms + 200, 503, 'REJECTED');
  }
  return text;
}

function isSignedWith(secret: string, { headers, body }: Received): boolean {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  const mac = createHmac('sha256', Buffer.from(secret, 'base64')).update(signed).digest('base64');
  return headers['webhook-signature'] === `v1,${mac}`;
}

const LAST_RELOAD = 'limitlens_config_last_reload_successful\\{instance="web1"\\}';

test('thresholds, receivers and their secrets change by SIGHUP; a bad file changes nothing', async (t) => {
  const nowMs = Date.now();
  const interval = '100ms';
  const off = { interval, thresholds: { RejectRatioHigh: 'off', NoEvents: 'off' } };
  const site = new Site(t, { alerts: off }, limited(nowMs - 300_000, nowMs - 100_000));
  const { tail } = site;
  await tail.until('"message":"stored"');
  const hook = await WebhookReceiver.open(t);
  const secrets = ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'c2Vjb25kLXNlY3JldC1vZi10aGUtaG9vaw=='];
  const secretFile = site.path('secret');
  writeFileSync(secretFile, `whsec_${secrets[0]!}\n`);
  const receiver = { webhook: hook.url, webhook_secret_file: 'secret' };
  const thresholds = {
    ...off.thresholds,
    'RejectRatioHigh.for': '0s',
    'RejectRatioHigh.least': 10,
  };
  const on = { interval, ...receiver, thresholds: { ...thresholds, RejectRatioHigh: '20%' } };
  site.write({ alerts: on });
  assert.match(
    await site.hangUp(),
    /"keys":\["alerts\.thresholds","alerts\.webhook","alerts\.webhook_secret_file"\].*"goes by the new limitlens\.yaml"/,
  );
  const [first] = await hook.count(1);
  assert.match(first!.body, /"status":"firing".*RejectRatioHigh/);
  assert.ok(isSignedWith(secrets[0]!, first!));

  // A fault in any section, and one in what a value means: the file is left alone as a whole.
  const wrong: readonly [Sections, RegExp][] = [
    [{ alerts: { ...on, interval: 'soon' } }, /alerts\.interval: expected/],
    [{ alerts: { ...on, thresholds: { Nope: '1%' } }, http: {} }, /The names: .*RejectRatioHigh/],
  ];
  for (const [sections, why] of wrong) {
    site.write(sections);
    const said = await site.hangUp();
    assert.match(said, /limitlens\.yaml is not taken: what it said before stays/);
    assert.match(said, why);
    await site.metric(new RegExp(`^${LAST_RELOAD} 0$`, 'm'));
  }
  site.write({ alerts: { ...on, webhook_secret_file: 'gone' } });
  assert.match(await site.hangUp(), /secrets of alerts are not taken: those of before stay/);
  await site.metric(new RegExp(`^${LAST_RELOAD} 0$`, 'm'));
  await site.metric(/^limitlens_config_reloads_total\{result="refused",instance="web1"\} 3$/m);

  // The secret's file alone has changed, and what fires is not told again.
  writeFileSync(secretFile, `whsec_${secrets[1]!}\n`);
  site.write({ alerts: on });
  await site.hangUp();
  await site.metric(new RegExp(`^${LAST_RELOAD} 1$`, 'm'));
  site.write({ alerts: { ...on, thresholds: { ...thresholds, RejectRatioHigh: '50%' } } });
  await site.hangUp();
  const [, second] = await hook.count(2);
  assert.match(second!.body, /"status":"resolved".*RejectRatioHigh/);
  assert.ok(isSignedWith(secrets[1]!, second!));
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
});

test('logins change by SIGHUP, for the page and for commands beside it; addresses need a restart', async (t) => {
  const tokens = ['first-token-0123456789', 'second-token-0123456789'];
  const http = { listen: '127.0.0.1:0', token_file: 'token-0' };
  const site = new Site(t, { http }, limited(Date.now() - 60_000, Date.now() - 20_000));
  const { tail } = site;
  for (const [i, token] of tokens.entries()) writeFileSync(site.path(`token-${i}`), `${token}\n`);
  writeFileSync(site.path('logins'), 'ops:correct horse\n');
  await tail.until('"message":"stored"');
  const port = /"port":(\d+)/.exec(tail.said)![1]!;
  const status = async (authorization: string): Promise<number> => {
    const url = `http://127.0.0.1:${port}/metrics`;
    return (await fetch(url, { headers: { authorization } })).status;
  };
  const bearer = tokens.map((token) => `Bearer ${token}`);
  const basic = `Basic ${Buffer.from('ops:correct horse').toString('base64')}`;
  const report = async (token: string): Promise<number | null> => {
    const args = ['report', '--store', site.path('store')];
    return (await runCli(args, { env: { LIMITLENS_TOKEN: token } })).code;
  };
  assert.deepEqual([await status(bearer[0]!), await status(basic)], [200, 401]);
  assert.equal(await report(tokens[0]!), 0);

  site.write({ http: { ...http, token_file: 'token-1', basic_file: 'logins' } });
  assert.match(await site.hangUp(), /"keys":\["http\.basic_file","http\.token_file"\]/);
  assert.deepEqual(await Promise.all([...bearer, basic].map(status)), [401, 200, 200]);
  assert.notEqual(await report(tokens[0]!), 0);
  assert.equal(await report(tokens[1]!), 0);

  site.write({ http: { ...http, token_file: 'gone' } });
  assert.match(await site.hangUp(), /logins and TLS files are not taken: those of before stay/);
  assert.deepEqual(await Promise.all([...bearer, basic].map(status)), [401, 200, 200]);

  site.write({
    http: { listen: '127.0.0.1:1', token_file: 'token-1', tls_cert: 'c.pem', tls_key: 'k.pem' },
    store: { folder: 'elsewhere', commit_interval: '20ms', spool_max: '1MiB' },
  });
  const said = await site.hangUp();
  assert.match(
    said,
    /"keys":\["http\.listen","http\.tls_cert","http\.tls_key","store\.folder"\].*needs a restart/,
  );
  assert.match(said, /"keys":\["http\.basic_file","store\.commit_interval","store\.spool_max"\]/);
  assert.equal(await status(basic), 401);
  const url = `http://127.0.0.1:${port}/metrics`;
  const shown = await fetch(url, { headers: { authorization: bearer[1]! } });
  assert.match(await shown.text(), /^limitlens_spool_capacity_bytes\{.*\} 1048576$/m);
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
});
