/**
 * The webhook against a real server: signed, in order, tried again, kept over restarts.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readAlertState, writeAlertState } from '../src/alerting/alert-state-file.js';
import type { WebhookAlert } from '../src/alerting/messages.js';
import { Notified } from '../src/alerting/notified.js';
import { parseReceiver } from '../src/alerting/post.js';
import { WebhookSender, type QueuedMessage, type WebhookOptions } from '../src/alerting/webhook.js';
import { InputError } from '../src/errors.js';
import { RecordedAlerts } from './support/recorded-alerts.js';
import { makeTempDir } from './support/temp-dir.js';
import { WebhookReceiver } from './support/webhook-receiver.js';

function alert(zone: string, status: WebhookAlert['status'] = 'firing'): WebhookAlert {
  const labels = { alertname: 'RejectRatioHigh', zone };
  const times = { startsAt: '2026-03-02T10:00:00.000Z', endsAt: '0001-01-01T00:00:00Z' };
  return {
    status,
    labels,
    annotations: {},
    ...times,
    generatorURL: '',
    fingerprint: zone,
    value: 1,
  };
}

function message(id: string, ...alerts: WebhookAlert[]): QueuedMessage {
  return { id, alerts };
}

interface Bench {
  readonly receiver: WebhookReceiver;
  readonly recorded: RecordedAlerts;
  /** The queue as it was written down last. */
  readonly written: () => readonly string[] | undefined;
  readonly sender: WebhookSender;
}

async function bench(
  t: TestContext,
  own: Partial<WebhookOptions> = {},
  queue: readonly QueuedMessage[] = [],
): Promise<Bench> {
  const receiver = await WebhookReceiver.open(t);
  const recorded = new RecordedAlerts();
  let written: readonly string[] | undefined;
  const sender = new WebhookSender(
    {
      receiver: parseReceiver('--alert-webhook', receiver.url),
      key: undefined,
      instance: 'web1',
      externalUrl: 'http://h',
      onChange: () => {
        written = sender.queue.map(({ id }) => id);
        recorded.wake();
        return Promise.resolve();
      },
      firstWaitMs: 1,
      ...own,
    },
    new Notified(recorded, recorded),
    queue,
  );
  t.after(() => sender.stop());
  return { receiver, recorded, sender, written: () => written };
}

const ids = (receiver: WebhookReceiver): unknown[] =>
  receiver.received.map(({ headers }) => headers['webhook-id']);

test('is signed, says what Alertmanager says, and hides the path of the URL', async (t) => {
  const key = Buffer.from('a key');
  const { receiver, recorded, sender } = await bench(t, { key, now: () => 1_614_265_330_999 });
  sender.add(message('msg_1', alert('a'), alert('b', 'resolved')));
  sender.run();
  const [received] = await receiver.count(1);
  const { headers, body, path } = received!;
  assert.equal(path, '/hook/secret?a=b');
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['webhook-timestamp'], '1614265330');
  const mac = createHmac('sha256', key).update(`msg_1.1614265330.${body}`).digest('base64');
  assert.equal(headers['webhook-signature'], `v1,${mac}`);
  const { version, status, alerts } = JSON.parse(body) as Record<string, unknown>;
  assert.deepEqual([version, status, (alerts as unknown[]).length], ['4', 'firing', 2]);
  const name = new URL(receiver.url).origin;
  await recorded.until(() => recorded.value('notifications', name) === 1);
  assert.equal(recorded.value('notificationLastSuccess', name), 1_614_265_330.999);
  assert.ok(!JSON.stringify(recorded.all()).includes('secret'));
});

test('is tried again under the same id until it is taken, and what follows waits', async (t) => {
  const { receiver, recorded, sender, written } = await bench(t);
  const name = new URL(receiver.url).origin;
  receiver.answers = [500, 429, 302, 503];
  sender.add(message('msg_1', alert('a')));
  sender.add(message('msg_2', alert('a', 'resolved')));
  sender.run();
  await recorded.until(() => written()?.length === 0);
  assert.deepEqual(ids(receiver), ['msg_1', 'msg_1', 'msg_1', 'msg_1', 'msg_1', 'msg_2']);
  assert.equal(recorded.value('notificationsFailed', name), 4);
  assert.equal(recorded.value('notifications', name), 2);
  assert.equal(recorded.value('notificationQueueLength', name), 0);
  const said = recorded.said.map(({ message: text }) => text);
  assert.deepEqual(said, [...Array<string>(4).fill('a notification failed'), 'notifications are taken again']); // prettier-ignore
  assert.deepEqual(recorded.said.map(({ level }) => level).slice(0, 1), ['error']);
  assert.match(String(recorded.said[0]?.fields['error']), /^answered 500: "not now"$/);
});

test('a message that it calls faulty is given up, loudly, and the next one comes', async (t) => {
  const { receiver, recorded, sender, written } = await bench(t);
  receiver.answers = [422];
  sender.add(message('msg_1', alert('a')));
  sender.add(message('msg_2', alert('b')));
  sender.run();
  await recorded.until(() => written()?.length === 0);
  assert.deepEqual(ids(receiver), ['msg_1', 'msg_2']);
  assert.equal(recorded.said[0]?.fields['isGivenUp'], true);
});

test('waits grow, with a random part, and Retry-After goes before them', async (t) => {
  const waits: number[] = [];
  const { receiver, recorded, sender, written } = await bench(t, {
    firstWaitMs: 100,
    random: () => 0.5,
    wait: (ms) => {
      waits.push(ms);
      return Promise.resolve();
    },
  });
  receiver.answers = [
    500,
    500,
    [503, { 'retry-after': '120' }],
    500,
    ...Array<number>(12).fill(500),
  ];
  sender.add(message('msg_1', alert('a')));
  sender.run();
  await recorded.until(() => written()?.length === 0);
  assert.deepEqual(waits.slice(0, 4), [75, 150, 120_000, 600]);
  assert.equal(waits.at(-1), 300_000 * 0.75);
});

test('a receiver that is not there, and one that says nothing of HTTP', async (t) => {
  const server = createServer((socket) => socket.resume().end('hello\r\n\r\n'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const nobody = await bench(t, { receiver: parseReceiver('', `http://127.0.0.1:${port}/`) });
  nobody.sender.add(message('msg_1', alert('a')));
  nobody.sender.run();
  await nobody.recorded.until(() => nobody.recorded.said.length >= 1);
  assert.notEqual(nobody.recorded.said[0]?.fields['error'], '');
  server.close();
  await once(server, 'close');
  await nobody.recorded.until(() => /ECONNREFUSED/.test(String(nobody.recorded.said.at(-1)?.fields['error']))); // prettier-ignore
});

test('when too many wait the two oldest become one, with the later state of each', async (t) => {
  const { receiver, recorded, sender, written } = await bench(t, { mostWaiting: 2 });
  sender.add(message('msg_1', alert('a'), alert('b')));
  sender.add(message('msg_2', alert('a', 'resolved'), alert('c')));
  sender.add(message('msg_3', alert('c', 'resolved')));
  assert.deepEqual(sender.queue.map(({ id }) => id), ['msg_2', 'msg_3']); // prettier-ignore
  sender.run();
  await recorded.until(() => written()?.length === 0);
  const bodies = receiver.received.map(
    ({ body }) => JSON.parse(body) as { alerts: WebhookAlert[] },
  );
  assert.deepEqual(
    bodies.map(({ alerts }) => alerts.map((one) => `${one.labels['zone']} ${one.status}`)),
    [['a resolved', 'b firing', 'c firing'], ['c resolved']],
  );
  assert.equal(recorded.value('notificationsMerged', new URL(receiver.url).origin), 1);
});

test('the message on its way is not merged with others', async (t) => {
  const { receiver, recorded, sender, written } = await bench(t, { mostWaiting: 2 });
  receiver.answers = ['hang'];
  sender.add(message('msg_1', alert('a')));
  sender.run();
  await receiver.count(1);
  for (const n of [2, 3, 4]) sender.add(message(`msg_${n}`, alert(`zone ${n}`)));
  assert.deepEqual(sender.queue.map(({ id }) => id), ['msg_1', 'msg_4']); // prettier-ignore
  assert.deepEqual(sender.queue[1]?.alerts.length, 3);
  await sender.stop();
  assert.equal(written(), undefined);
  assert.equal(recorded.said.length, 2, 'each of the last two made two into one');
});

test('what was not taken is kept on disk, and goes out after a restart in its order', async (t) => {
  const path = join(makeTempDir(t), 'deep', 'alerts-web1.json');
  const first = await bench(t);
  first.receiver.answers = ['hang'];
  first.sender.add(message('msg_1', alert('a')));
  first.sender.add(message('msg_2', alert('a', 'resolved')));
  first.sender.run();
  await first.receiver.count(1);
  await first.sender.stop();
  await writeAlertState(path, { alerts: [], evaluated: {}, queue: first.sender.queue });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const state = await readAlertState(path);
  const second = await bench(t, {}, state!.queue);
  assert.equal(second.recorded.value('notificationQueueLength', new URL(second.receiver.url).origin), 2); // prettier-ignore
  second.sender.run();
  await second.recorded.until(() => second.written()?.length === 0);
  assert.deepEqual(ids(second.receiver), ['msg_1', 'msg_2']);
});

test('a state file that is none of ours is refused, a missing one is none', async (t) => {
  const path = join(makeTempDir(t), 'alerts.json');
  assert.equal(await readAlertState(path), undefined);
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '{"version":2,"alerts":[],"queue":[]}',
    '{"version":1}',
  ]) {
    writeFileSync(path, text);
    await assert.rejects(
      readAlertState(path),
      (error) => error instanceof InputError && error.exitCode === 78,
    );
  }
  await writeAlertState(path, { alerts: [], evaluated: { NoEvents: 5 }, queue: [] });
  assert.deepEqual((await readAlertState(path))?.evaluated, { NoEvents: 5 });
  assert.equal(readFileSync(path, 'utf8').endsWith('\n'), true);
});
