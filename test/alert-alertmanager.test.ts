/**
 * The evaluation of the alerts with a real Alertmanager behind it: what fires shows there, is told
 * once however often the daemon is restarted, and is resolved.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Overrides } from '../alerts/conditions.js';
import { AlertLoop } from '../src/alerting/alert-loop.js';
import { parseReceiver } from '../src/alerting/post.js';
import { EXIT, InputError } from '../src/errors.js';
import { Alertmanager } from './support/alertmanager.js';
import { RecordedAlerts } from './support/recorded-alerts.js';
import { makeTempDir } from './support/temp-dir.js';
import { WebhookReceiver, type Received } from './support/webhook-receiver.js';

/** A name that would end a label, begin a line and be taken for a template, were it not a value. */
const HOSTILE = 'a"} 1\n{{ .Labels.severity }}\u202e\\';

/** At once, and of all others nothing. */
const OVERRIDES: Overrides = {
  RejectRatioHigh: { forSeconds: 0 },
  StoreFailing: { forSeconds: 0 },
  NotificationsFailing: { forSeconds: 0 },
};

/** A store in which a share of the requests of some zones is rejected. */
class MadeUpStore {
  rejected: Readonly<Record<string, number>> = {};
  isAway = false;
  asked = 0;

  query<T>(sql: string): Promise<T[]> {
    this.asked++;
    if (this.isAway) return Promise.reject(new InputError('no answer', EXIT.io));
    const isAsked = sql.includes("'rejected', 'exhausted'");
    const rows = Object.entries(isAsked ? this.rejected : {}).map(([zone, value]) => ({
      instance: 'web1',
      zone,
      value,
    }));
    return Promise.resolve(rows as T[]);
  }
}

interface Daemon {
  readonly loop: AlertLoop;
  readonly recorded: RecordedAlerts;
}

/** A process of the daemon, as far as alerts go. */
async function daemon(
  t: TestContext,
  store: MadeUpStore,
  statePath: string,
  receivers: { readonly alertmanagers?: readonly string[]; readonly webhook?: string },
): Promise<Daemon> {
  const recorded = new RecordedAlerts();
  const { webhook } = receivers;
  const loop = await AlertLoop.open(store, {
    instance: 'web1',
    intervalMs: 30_000,
    overrides: OVERRIDES,
    alertmanagers: (receivers.alertmanagers ?? []).map((url) => parseReceiver('', url)),
    ...(webhook === undefined ? {} : { webhook: { receiver: parseReceiver('', webhook), key: undefined } }), // prettier-ignore
    settleMs: 1000,
    statePath,
    externalUrl: 'http://limitlens.example',
    runbooksUrl: 'https://wiki.example/runbooks',
    log: recorded,
    metrics: recorded,
    readMetric: (id) => recorded.samples(id),
  });
  t.after(() => loop.stop());
  loop.stepped({ reachedMs: -Infinity, caughtUpMs: Date.now() });
  return { loop, recorded };
}

/** What a message of Alertmanager or of ours says, shortest. */
function saidIn({ body }: Received): string {
  const { alerts } = JSON.parse(body) as {
    alerts: { status: string; labels: Record<string, string> }[];
  };
  return alerts.map(({ status, labels }) => `${labels['zone'] ?? ''} ${status}`).join(', ');
}

test('fires, shows in the API, is told once over restarts, and is resolved', async (t) => {
  const heard = await WebhookReceiver.open(t);
  const alertmanager = await Alertmanager.start(t, heard.url);
  const statePath = join(makeTempDir(t), 'alerts.json');
  const store = new MadeUpStore();
  const open = (): Promise<Daemon> => daemon(t, store, statePath, { alertmanagers: [alertmanager.url] }); // prettier-ignore

  const first = await open();
  store.rejected = { [HOSTILE]: 0.1285 };
  await first.loop.evaluate();
  const [shown, ...others] = await alertmanager.alerts();
  assert.deepEqual(others, []);
  const zone = 'a"} 1\\u000a{{ .Labels.severity }}\\u202e\\';
  assert.deepEqual(shown!.labels, {
    alertname: 'RejectRatioHigh',
    severity: 'warning',
    instance: 'web1',
    zone,
  });
  assert.deepEqual(shown!.annotations, {
    summary: `Zone ${zone} rejects many requests`,
    description: `Zone ${zone} of web1 rejected 12.85% of its requests within 10 minutes.`,
    runbook_url: 'https://wiki.example/runbooks/reject-ratio.md',
  });
  assert.equal(shown!.generatorURL, 'http://limitlens.example');
  assert.equal(Date.parse(shown!.endsAt) - Date.parse(shown!.startsAt), 4 * 60_000);
  await heard.count(1);
  await first.loop.stop();

  const second = await open();
  store.rejected = { [HOSTILE]: 0.2 };
  await second.loop.evaluate();
  const [again] = await alertmanager.alerts();
  assert.equal(again!.startsAt, shown!.startsAt);
  assert.match(again!.annotations['description']!, /20%/);
  assert.deepEqual(second.recorded.said, []);
  await second.loop.stop();

  const third = await open();
  store.rejected = { pages: 0.3 };
  await third.loop.evaluate();
  await heard.count(3);
  const said = heard.received.map(saidIn);
  assert.deepEqual(said.slice(0, 1), [`${zone} firing`]);
  assert.deepEqual(said.slice(1).sort(), [`${zone} resolved`, 'pages firing']);
  const left = (await alertmanager.alerts()).map(({ labels }) => labels['zone']);
  assert.deepEqual(left, ['pages']);
  assert.deepEqual(third.recorded.said.map(({ level, message }) => `${level}: ${message}`).sort(), ['info: an alert is resolved', 'warn: an alert fires']); // prettier-ignore
  assert.equal(third.recorded.value('notifications', alertmanager.url), 1);
});

test('what is not taken is sent again at the next evaluation, and its failing is an alert', async (t) => {
  const heard = await WebhookReceiver.open(t);
  const nobody = await WebhookReceiver.open(t);
  const hook = await WebhookReceiver.open(t);
  const alertmanager = await Alertmanager.start(t, heard.url);
  const store = new MadeUpStore();
  const away = `${new URL(nobody.url).origin}/prefix/`;
  const { loop, recorded } = await daemon(t, store, join(makeTempDir(t), 'alerts.json'), {
    alertmanagers: [away, alertmanager.url],
    webhook: hook.url,
  });
  nobody.answers = [503, 503, 503, 503];
  store.rejected = { api: 0.1 };
  for (let round = 0; round < 4; round++) await loop.evaluate();
  assert.deepEqual(nobody.received.map(({ path }) => path), Array(4).fill('/prefix/api/v2/alerts')); // prettier-ignore
  const receiver = new URL(away).origin;
  assert.equal(recorded.value('notificationsFailed', receiver), 4);
  assert.equal(recorded.value('notificationsFailed', alertmanager.url), 0);
  // The others hear that it does not.
  const shown = (await alertmanager.alerts()).map(({ labels }) => [labels['alertname'], labels['receiver']]); // prettier-ignore
  assert.deepEqual(shown.sort(), [['NotificationsFailing', receiver], ['RejectRatioHigh', undefined]]); // prettier-ignore
  const told = await hook.count(2);
  assert.deepEqual(told.map(saidIn), ['api firing', ' firing']);
  await loop.evaluate();
  assert.equal(recorded.value('notifications', receiver), 1);
  const { body } = nobody.received.at(-1)!;
  assert.equal((JSON.parse(body) as unknown[]).length, 2);
});

test('a store that is away neither resolves nor fires, and says so once', async (t) => {
  const hook = await WebhookReceiver.open(t);
  const store = new MadeUpStore();
  const { loop, recorded } = await daemon(t, store, join(makeTempDir(t), 'alerts.json'), {
    webhook: hook.url,
  });
  store.rejected = { api: 0.1 };
  await loop.evaluate();
  store.isAway = true;
  const asked = store.asked;
  recorded.add('storeInserts', { result: 'failed' }, 0);
  await loop.evaluate();
  assert.equal(store.asked, asked + 1, 'the others need not be tried');
  recorded.add('storeInserts', { result: 'failed' }, 3);
  await loop.evaluate();
  store.isAway = false;
  store.rejected = {};
  await loop.evaluate();
  const told = await hook.count(3);
  assert.deepEqual(told.map(saidIn), ['api firing', ' firing', 'api resolved']);
  assert.match(told[1]!.body, /The store takes no rows of web1/);
  const failures = recorded.said.filter(
    ({ message }) => message === 'alerts could not be evaluated',
  );
  assert.equal(failures.length, 1);
});

test('a backlog pages for nothing that is over, and calls nothing off', async (t) => {
  const hook = await WebhookReceiver.open(t);
  const store = new MadeUpStore();
  const { loop } = await daemon(t, store, join(makeTempDir(t), 'alerts.json'), {
    webhook: hook.url,
  });
  store.rejected = { api: 0.1 };
  await loop.evaluate();
  const lastNightMs = Date.now() - 8 * 3_600_000;
  loop.stepped({ reachedMs: lastNightMs, caughtUpMs: lastNightMs });
  store.rejected = { pages: 0.9 };
  await loop.evaluate();
  assert.deepEqual(loop.alerts.map(({ labels, state }) => [labels['zone'], state]), [['api', 'firing']]); // prettier-ignore
  loop.stepped({ reachedMs: Date.now() - 60_000, caughtUpMs: lastNightMs });
  store.rejected = {};
  await loop.evaluate();
  assert.deepEqual((await hook.count(2)).map(saidIn), ['api firing', 'api resolved']);
});
