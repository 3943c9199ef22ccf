/**
 * `limitlens tail` with alerts, and `limitlens alerts`, as processes.
 */
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { prometheusRules } from '../alerts/prometheus-rules.js';
import type { AlertChoice } from '../src/alerting/alert-options.js';
import { checkAlertChoice } from '../src/commands/tail-alerts.js';
import { InputError } from '../src/errors.js';
import { Alertmanager } from './support/alertmanager.js';
import { runCli } from './support/cli.js';
import { TailProcess } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';
import { WebhookReceiver } from './support/webhook-receiver.js';

const NGINX_CONF = `
events {}
http {
  log_format limits '$remote_addr $msec $request_time $status $limit_req_status "$request" $uri';
  limit_req_zone $binary_remote_addr zone=perip:1m rate=1r/s;
  server {
    listen 80;
    server_name a.example;
    access_log access.log limits;
    location / { limit_req zone=perip burst=1 nodelay; }
  }
}
`;

interface Site {
  readonly folder: string;
  readonly log: string;
  readonly conf: string;
  readonly store: string;
}

function siteOf(t: TestContext): Site {
  const folder = makeTempDir(t);
  const path = (name: string): string => join(folder, name);
  const [log, conf, store] = [path('access.log'), path('nginx.conf'), path('store')];
  writeFileSync(conf, NGINX_CONF);
  writeFileSync(log, '');
  return { folder, log, conf, store };
}

function line(client: string, ms: number, status: 'PASSED' | 'REJECTED'): string {
  const code = status === 'PASSED' ? 200 : 503;
  return `${client} ${(ms / 1000).toFixed(3)} 0.000 ${code} ${status} "GET /a{{.}}\\x0A HTTP/1.1" /a\n`;
}

/** Three requests every ten seconds, of which the limit lets two through. */
function limited(fromMs: number, toMs: number): string {
  let text = '';
  for (let ms = fromMs; ms < toMs; ms += 10_000) {
    text += line('203.0.113.9', ms, 'PASSED') + line('203.0.113.9', ms + 100, 'PASSED');
    text += line('203.0.113.9', ms + 200, 'REJECTED');
  }
  return text;
}

function free(fromMs: number, toMs: number): string {
  let text = '';
  for (let ms = fromMs; ms < toMs; ms += 1000) text += line('203.0.113.10', ms, 'PASSED');
  return text;
}

function tail(site: Site, ...more: readonly string[]): TailProcess {
  return new TailProcess([
    ...['tail', '--conf', site.conf, '--store', site.store, '--instance', 'web1'],
    ...['--listen', '127.0.0.1:0', '--lateness', '1s', '--commit-interval', '50ms'],
    ...['--alert-interval', '100ms', '--alert-threshold', 'RejectRatioHigh=20%'],
    ...['--alert-threshold', 'RejectRatioHigh.for=0s'],
    ...['--alert-threshold', 'RejectRatioHigh.least=10', ...more, site.log],
  ]);
}

/** What comes while the daemon runs; its end instead is a failure. */
async function during<T>(daemon: TailProcess, coming: Promise<T>): Promise<T> {
  const ended = daemon.exit.then((how) => {
    throw new Error(`the daemon ended with ${how.join(' ')}:\n${daemon.said}`);
  });
  return Promise.race([coming, ended]);
}

/** The daemon's metrics, once a line of them matches. */
async function metrics(daemon: TailProcess, pattern: RegExp): Promise<string> {
  await daemon.until('"listens"');
  const port = /"port":(\d+)/.exec(daemon.said)![1]!;
  for (;;) {
    const text = await (await during(daemon, fetch(`http://127.0.0.1:${port}/metrics`))).text();
    if (pattern.test(text)) return text;
    await pause(50);
  }
}

test('fires and resolves once, over a kill -9, at Alertmanager and a webhook', async (t) => {
  const heard = await WebhookReceiver.open(t);
  const hook = await WebhookReceiver.open(t);
  const alertmanager = await Alertmanager.start(t, heard.url);
  const site = siteOf(t);
  const secretPath = join(site.folder, 'secret');
  writeFileSync(secretPath, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n');
  const receivers = [
    ...['--alertmanager', alertmanager.url, '--alert-webhook', hook.url],
    ...['--alert-webhook-secret-file', secretPath, '--runbooks-url', 'https://wiki.example/r/'],
  ];
  const nowMs = Date.now();
  appendFileSync(site.log, limited(nowMs - 300_000, nowMs - 200_000));

  const first = tail(site, ...receivers);
  t.after(() => first.child.kill('SIGKILL'));
  const [told] = await during(first, hook.count(1));
  await during(first, heard.count(1));
  assert.match(String(told!.headers['webhook-signature']), /^v1,[A-Za-z0-9+/]{43}=$/);
  const { alerts } = JSON.parse(told!.body) as { alerts: Record<string, unknown>[] };
  assert.deepEqual(alerts[0]!['labels'], {
    alertname: 'RejectRatioHigh',
    severity: 'warning',
    instance: 'web1',
    zone: 'perip',
  });
  assert.equal(
    (alerts[0]!['annotations'] as Record<string, string>)['runbook_url'],
    'https://wiki.example/r/reject-ratio.md',
  );
  const text = await metrics(first, /^limitlens_alerts\{alertname="RejectRatioHigh",state="firing",instance="web1"\} 1$/m); // prettier-ignore
  assert.match(
    text,
    /^limitlens_notifications_failed_total\{receiver="[^"]+",instance="web1"\} 0$/m,
  );
  assert.ok(!text.includes('/hook/secret'));
  await metrics(first, new RegExp(`^limitlens_notifications_total\\{receiver="${alertmanager.url}",instance="web1"\\} [1-9]`, 'm')); // prettier-ignore
  await first.end('SIGKILL');

  const second = tail(site, ...receivers);
  t.after(() => second.child.kill('SIGKILL'));
  // Alertmanager is told that it still fires; the webhook knows.
  await metrics(second, new RegExp(`^limitlens_notifications_total\\{receiver="${alertmanager.url}",instance="web1"\\} [1-9]`, 'm')); // prettier-ignore
  appendFileSync(site.log, free(nowMs - 190_000, nowMs - 40_000));
  await during(second, hook.count(2));
  await during(second, heard.count(2));
  const statuses = [...hook.received, ...heard.received].map(
    ({ body }) => (JSON.parse(body) as { status: string }).status,
  );
  assert.deepEqual(statuses, ['firing', 'resolved', 'firing', 'resolved']);
  assert.deepEqual(await alertmanager.alerts(), []);
  assert.equal(await second.end('SIGTERM'), 0);
  assert.match(second.said, /"an alert is resolved"/);
  assert.ok(!second.said.includes('"an alert fires"'));
  assert.ok(!(first.said + second.said).includes('/hook/secret'));
});

test('what happened last night pages nobody; that nothing comes is an alert', async (t) => {
  const hook = await WebhookReceiver.open(t);
  const site = siteOf(t);
  const nightMs = Date.now() - 8 * 3_600_000;
  appendFileSync(site.log, limited(nightMs, nightMs + 300_000));
  const daemon = tail(site, '--alert-webhook', hook.url, '--alert-threshold', 'NoEvents.for=0s');
  t.after(() => daemon.child.kill('SIGKILL'));
  const [told] = await during(daemon, hook.count(1));
  assert.match(told!.body, /limitlens sees no requests of web1/);
  await metrics(
    daemon,
    /^limitlens_alert_evaluations_total\{result="ok",instance="web1"\} [1-9]\d\d/m,
  );
  assert.deepEqual(hook.received.slice(1), []);
  assert.equal(await daemon.end('SIGTERM'), 0);
});

test('limitlens alerts: text, JSON, exit codes, and the time that is asked for', async (t) => {
  const site = siteOf(t);
  const beginMs = Date.parse('2026-03-02T10:00:00Z');
  writeFileSync(site.log, limited(beginMs, beginMs + 1_800_000));
  const imported = await runCli(['import', '--conf', site.conf, '--store', site.store, site.log]);
  assert.equal(imported.code, 0, imported.stderr);
  const ask = (...args: string[]): ReturnType<typeof runCli> =>
    runCli(['alerts', '--store', site.store, '--threshold', 'RejectRatioHigh.least=100', ...args]);

  const now = await ask();
  assert.equal(now.code, 1);
  assert.match(now.stdout, /^At 2026-03-02T10:30:00Z: 2 firing, 0 pending, of 11 conditions\.\n/);
  assert.match(now.stdout, /^FIRES {2}RejectRatioHigh \(warning\) {2}instance=default zone=perip\n {2}Zone perip of default rejected 33\.33% of its requests within 10 minutes\.\n {2}alerts\/runbooks\/reject-ratio\.md\n/m); // prettier-ignore
  assert.match(now.stdout, /^FIRES {2}NoEvents /m);
  assert.match(now.stdout, /Not asked, only a running daemon knows: SourceLagging, StoreFailing, NotificationsFailing\.\n$/); // prettier-ignore

  const early = await ask('--at', '2026-03-02T10:15:00Z', '--format', 'json');
  assert.equal(early.code, 0, early.stdout);
  const { atS, alerts } = JSON.parse(early.stdout) as {
    atS: number;
    alerts: { name: string; state: string }[];
  };
  assert.equal(atS * 1000, Date.parse('2026-03-02T10:15:00Z'));
  assert.deepEqual(alerts.map(({ name, state }) => [name, state]), [['RejectRatioHigh', 'pending']]); // prettier-ignore

  const off = await ask('--threshold', 'RejectRatioHigh=off', '--threshold', 'NoEvents=off');
  assert.equal(off.code, 0, off.stdout);
  const other = await ask('--instance', 'other', '--at', 'yesterday');
  assert.equal(other.code, 64);
  assert.match(other.stderr, /--at yesterday: expected a time/);
});

test('limitlens alerts rules: the file of the repository, with other numbers', async () => {
  assert.equal(prometheusRules(), readFileSync('alerts/prometheus.rules.yml', 'utf8'));
  const own = await runCli([
    ...['alerts', 'rules', '--threshold', 'RejectRatioHigh=10%', '--threshold', 'NoEvents=off'],
    ...['--runbooks-url', 'https://wiki.example/'],
  ]);
  assert.equal(own.code, 0);
  assert.equal(
    own.stdout,
    prometheusRules('https://wiki.example', {
      RejectRatioHigh: { threshold: 0.1 },
      NoEvents: { threshold: Infinity },
    }),
  );
  assert.ok(own.stdout.includes('> 0.1 and') && !own.stdout.includes('NoEvents'));
});

test('limitlens tail refuses what it could not use', async (t) => {
  const site = siteOf(t);
  const cases: readonly [choice: Partial<AlertChoice>, code: number, said: RegExp][] = [
    [{ alertThreshold: ['Nope=1'] }, 64, /--alert-threshold: expected NAME=VALUE.*\n {2}The names: /],
    [{ alertmanager: ['localhost'] }, 64, /--alertmanager: expected a URL/],
    [{ alertWebhookSecretFile: site.conf }, 64, /expected --alert-webhook with it/],
    [{ alertWebhook: 'http://h/', alertWebhookSecretFile: join(site.folder, 'no') }, 78, /--alert-webhook-secret-file .*cannot be read/],
    [{ alertmanagerLoginFile: site.conf }, 78, /expected one line of user:password/],
    [{ runbooksUrl: 'wiki' }, 64, /--runbooks-url: expected a URL/],
  ]; // prettier-ignore
  for (const [choice, code, said] of cases) {
    assert.throws(
      () => checkAlertChoice({ alertIntervalMs: 1, alertmanager: [], alertThreshold: [], ...choice }, {}), // prettier-ignore
      (error) => error instanceof InputError && error.exitCode === code && said.test(error.message),
    );
  }
  const own = ['--store', site.store, '--alert-threshold', 'Nope=1', site.log];
  const run = await runCli(['tail', '--conf', site.conf, ...own]);
  assert.equal(run.code, 64);
  assert.match(run.stderr, /--alert-threshold: expected NAME=VALUE/);
});
