/**
 * Alerts without a store: pending, firing, resolved; the moment that is judged; the numbers that can
 * be set; and what hostile names become.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Condition } from '../alerts/condition.js';
import { CONDITIONS, conditionsInForce, settingsOf } from '../alerts/conditions.js';
import { prometheusRules } from '../alerts/prometheus-rules.js';
import { AlertBook, alertId, RESOLVED_KEPT_MS, type Found } from '../src/alerting/alert-book.js';
import { parseAlertChoice, parseThresholds } from '../src/alerting/alert-options.js';
import { logEnd } from '../src/alerting/log-end.js';
import { describeAlert, oneLine, postableAlert, webhookBody } from '../src/alerting/messages.js';
import { parseReceiver, parseRetryAfter } from '../src/alerting/post.js';
import { ProcessReadings, type Sample } from '../src/alerting/readings.js';
import { signatureHeaders, signingKey } from '../src/alerting/signature.js';
import { InputError } from '../src/errors.js';

const NAME = { name: 'RejectRatioHigh' } as const;
const FOR = { forSeconds: 120 };
const API: Found = { labels: { instance: 'web1', zone: 'api' }, value: 0.1 };
const PAGES: Found = { labels: { instance: 'web1', zone: 'pages' }, value: 0.2 };
const MINUTE_MS = 60_000;

/** States by zone. */
function states(book: AlertBook): Record<string, string> {
  return Object.fromEntries(book.alerts.map((one) => [one.labels['zone'] ?? '', one.state]));
}

/** One evaluation a minute: which of the two hold. @returns what changed, as zone and state */
function run(book: AlertBook, minutes: readonly (readonly Found[])[], fromMinute = 0): string[] {
  return minutes.flatMap((found, i) => {
    const ms = (fromMinute + i) * MINUTE_MS;
    const changes = book.advance(NAME, FOR, found, ms, ms + 500);
    return changes.map((one) => `${fromMinute + i}: ${one.labels['zone']} ${one.state}`);
  });
}

describe('pending, firing, resolved', () => {
  test('fires when it has held for so long, once, and is resolved once', () => {
    const book = new AlertBook();
    const changes = run(book, [[], [API], [API], [API], [API], [API, PAGES], [], []]);
    assert.deepEqual(changes, ['3: api firing', '6: api resolved']);
    const [alert] = book.alerts;
    assert.equal(alert?.activeMs, MINUTE_MS);
    assert.equal(alert?.startsMs, 3 * MINUTE_MS + 500);
    assert.equal(alert?.endsMs, 6 * MINUTE_MS + 500);
  });

  test('what does not hold throughout begins anew', () => {
    assert.deepEqual(run(new AlertBook(), [[API], [API], [], [API], [API], []]), []);
  });

  test('what holds again after it was resolved has to hold for as long', () => {
    const book = new AlertBook();
    const changes = run(book, [[API], [API], [API], [], [API], [API], [API]]);
    assert.deepEqual(changes, ['2: api firing', '3: api resolved', '6: api firing']);
  });

  test('what was resolved is remembered for a quarter of an hour', () => {
    const book = new AlertBook();
    run(book, [[API], [API], [API], []]);
    run(book, [[]], 3 + RESOLVED_KEPT_MS / MINUTE_MS);
    assert.deepEqual(states(book), { api: 'resolved' });
    run(book, [[]], 4 + RESOLVED_KEPT_MS / MINUTE_MS);
    assert.deepEqual(states(book), {});
  });

  test('a restart neither tells again nor forgets to resolve', () => {
    const book = new AlertBook();
    assert.deepEqual(run(book, [[API], [API], [API]]), ['2: api firing']);
    const restarted = (): AlertBook =>
      new AlertBook(
        JSON.parse(JSON.stringify(book.snapshot())) as ReturnType<AlertBook['snapshot']>,
      );
    assert.deepEqual(run(restarted(), [[API], [API]], 500), []);
    assert.deepEqual(run(restarted(), [[]], 500), ['500: api resolved']);
  });

  test('a restart goes on waiting, but not over a time that nobody looked at', () => {
    const book = new AlertBook();
    run(book, [[API], [API]]);
    assert.deepEqual(run(new AlertBook(book.snapshot()), [[API]], 2), ['2: api firing']);
    assert.deepEqual(run(new AlertBook(book.snapshot()), [[API], [API], [API]], 60), ['62: api firing']); // prettier-ignore
  });

  test('a clock that is set back makes nothing fire early', () => {
    const book = new AlertBook();
    run(book, [[API]], 100);
    assert.deepEqual(run(book, [[API], [API]], 50), []);
    assert.deepEqual(run(book, [[API]], 52), ['52: api firing']);
  });

  test('labels are the same whatever their order; other alerts are not touched', () => {
    assert.equal(alertId('NoEvents', { a: '1', b: '2' }), alertId('NoEvents', { b: '2', a: '1' }));
    assert.notEqual(alertId('NoEvents', { a: '1' }), alertId('StoreFailing', { a: '1' }));
    assert.notEqual(alertId('NoEvents', { a: '1","b' }), alertId('NoEvents', { a: '1', b: '' }));
    const book = new AlertBook();
    run(book, [[API], [API], [API]]);
    book.advance({ name: 'NoEvents' }, FOR, [], 3 * MINUTE_MS, 3 * MINUTE_MS);
    assert.deepEqual(states(book), { api: 'firing' });
  });

  test('whatever comes: each firing is followed by its end, and never sooner than for', () => {
    fc.assert(
      fc.property(
        fc.array(fc.subarray([API, PAGES]), { maxLength: 60 }),
        fc.nat(59),
        (minutes, restartAt) => {
          let book = new AlertBook();
          const open = new Map<string, number>();
          const holds = new Map<string, number>();
          minutes.forEach((found, minute) => {
            if (minute === restartAt) book = new AlertBook(book.snapshot());
            for (const { labels } of [API, PAGES]) {
              const isHere = found.some((one) => one.labels === labels);
              const zone = labels['zone']!;
              holds.set(zone, isHere ? (holds.get(zone) ?? 0) + 1 : 0);
            }
            for (const change of run(book, [found], minute)) {
              const [, zone = '', state] = /: (\w+) (\w+)$/.exec(change)!;
              assert.equal(open.has(zone), state === 'resolved');
              if (state === 'resolved') open.delete(zone);
              else open.set(zone, minute);
              assert.equal(holds.get(zone), state === 'firing' ? 3 : 0);
            }
            for (const [zone, minutesHeld] of holds) assert.equal(open.has(zone), minutesHeld >= 3);
          });
        },
      ),
      { seed: 1 },
    );
  });
});

describe('the moment that is judged', () => {
  const NOW_MS = 1_800_000_000_000;
  const SETTLE_MS = 80_000;
  const cases: readonly [
    title: string,
    reachedAgoS: number,
    caughtUpAgoS: number,
    expected: { toAgoS: number; isBehind: boolean },
  ][] = [
    ['busy: where the log is', 62, 100, { toAgoS: 70, isBehind: false }],
    ['idle since an hour: just before now', 3600, 1, { toAgoS: 90, isBehind: false }],
    ['last night is being read', 36_000, 36_000, { toAgoS: 36_000, isBehind: true }],
    ['nearly there', 370, 36_000, { toAgoS: 370, isBehind: false }],
    ['stuck since ten minutes', 660, 600, { toAgoS: 660, isBehind: true }],
    ['a line from next year counts as none', -31_536_000, 5, { toAgoS: 90, isBehind: false }],
    ['a clock a minute ahead is believed', -60, 5, { toAgoS: -60, isBehind: false }],
  ];
  for (const [title, reachedAgoS, caughtUpAgoS, { toAgoS, isBehind }] of cases) {
    test(title, () => {
      const progress = {
        reachedMs: NOW_MS - reachedAgoS * 1000,
        caughtUpMs: NOW_MS - caughtUpAgoS * 1000,
      };
      const toMs = NOW_MS - toAgoS * 1000;
      assert.deepEqual(logEnd(progress, SETTLE_MS, NOW_MS), { toMs, isBehind });
    });
  }

  test('before the first line nothing is judged', () => {
    const none = { reachedMs: -Infinity, caughtUpMs: -Infinity };
    assert.equal(logEnd(none, SETTLE_MS, NOW_MS).isBehind, true);
  });
});

describe("the daemon's own metrics", () => {
  const of = (name: Condition['name']): Condition => CONDITIONS.find((one) => one.name === name)!;

  async function ask(
    name: Condition['name'],
    steps: readonly (readonly Sample[])[],
    stepS: number,
  ): Promise<readonly Found[]> {
    const condition = of(name);
    assert.ok('metric' in condition.evaluate);
    let now: readonly Sample[] = [];
    const readings = new ProcessReadings(() => Promise.resolve(now));
    let found: readonly Found[] = [];
    for (const [i, step] of steps.entries()) {
      now = step;
      found = await readings.ask(condition, condition.evaluate, settingsOf(condition), i * stepS * 1000); // prettier-ignore
    }
    return found;
  }

  const failed = (value: number): Sample => ({
    labels: { instance: 'w', result: 'failed' },
    value,
  });
  const ok: Sample = { labels: { instance: 'w', result: 'ok' }, value: 1e6 };

  test('a counter counts what it gained within the window', async () => {
    assert.deepEqual(
      await ask(
        'StoreFailing',
        [
          [failed(5), ok],
          [failed(7), ok],
        ],
        30,
      ),
      [{ labels: { instance: 'w' }, value: 2 }],
    );
  });

  test('what it gained before the window does not count', async () => {
    const steps = [0, 4, 4, 4].map((value) => [failed(value)]);
    assert.equal((await ask('StoreFailing', steps, 200)).length, 1);
    assert.deepEqual(await ask('StoreFailing', [...steps, [failed(4)]], 200), []);
  });

  test('a gauge fires by label, above the threshold', async () => {
    const lag = (source: string, value: number): Sample => ({
      labels: { instance: 'w', source },
      value,
    });
    assert.deepEqual(await ask('SourceLagging', [[lag('a', 300), lag('b', 301)]], 30), [
      { labels: { instance: 'w', source: 'b' }, value: 301 },
    ]);
  });
});

describe('numbers that can be set', () => {
  test('threshold, least, window, for and off', () => {
    const overrides = parseThresholds('--alert-threshold', [
      'RejectRatioHigh=12.5%',
      'RejectRatioHigh.for=20m',
      'RejectRatioHigh.window=90s',
      'RejectRatioHigh.least=60',
      'NoEvents=2h',
      'ZoneForgetsDebt=0',
      'ZoneNearlyFull=off',
    ]);
    assert.deepEqual(overrides, {
      RejectRatioHigh: { threshold: 0.125, forSeconds: 1200, windowSeconds: 90, least: 60 },
      NoEvents: { threshold: 7200 },
      ZoneForgetsDebt: { threshold: 0 },
      ZoneNearlyFull: { threshold: Infinity },
    });
    assert.equal(conditionsInForce(overrides).length, CONDITIONS.length - 1);
    const rules = prometheusRules(undefined, overrides);
    assert.ok(!rules.includes('ZoneNearlyFull'));
    assert.match(rules, /\[90s\]\)\) > 0\.125 and .*\[90s\]\)\) >= 60'\n {8}for: 20m/);
  });

  const refused: readonly [text: string, said: RegExp][] = [
    [
      'Rejects=5%',
      /expected NAME=VALUE with the name of an alert.*\n {2}The names: ZoneForgetsDebt, .*NotificationsFailing\.$/,
    ],
    ['RejectRatioHigh', /expected NAME=VALUE/],
    ['constructor=1', /expected NAME=VALUE/],
    ['RejectRatioHigh.constructor=1', /with \.least, \.window, \.for or nothing/],
    ['RejectRatioHigh=5s', /expected a share like 5% or 0\.05, found "5s"/],
    ['RejectRatioHigh=101%', /expected a share/],
    ['RejectRatioHigh=-1', /expected a share/],
    ['RejectRatioHigh=', /expected a share/],
    ['NoEvents=5%', /expected a time like/],
    ['NoEvents.window=1h', /no \.window, since it is about now alone/],
    ['RejectRatioHigh.window=15s', /a minute or more/],
    ['ZoneForgetsDebt=1e3', /expected a number/],
    ['ZoneForgetsDebt.for=0.1s', /expected a time/],
    ["RejectRatioHigh=1'} or vector(1) #", /expected a share/],
  ];
  for (const [text, said] of refused) {
    test(`refused: ${text}`, () => {
      assert.throws(
        () => parseThresholds('--alert-threshold', [text]),
        (error) => error instanceof InputError && error.exitCode === 64 && said.test(error.message),
      );
    });
  }

  test('addresses of receivers keep their login out of names and messages', () => {
    const { alertmanagers } = parseAlertChoice({
      alertIntervalMs: 1000,
      alertmanager: ['https://me:s%40cret@am.example:9093/prefix'],
      alertThreshold: [],
    });
    assert.deepEqual(alertmanagers, [
      {
        url: 'https://am.example:9093/prefix',
        name: 'https://am.example:9093',
        authorization: `Basic ${Buffer.from('me:s@cret').toString('base64')}`,
      },
    ]);
    for (const bad of ['am:9093', 'ftp://x', '', 'http://me:secret@:x/']) {
      assert.throws(
        () => parseReceiver('--alertmanager', bad),
        (error: Error) => /expected a URL/.test(error.message) && !error.message.includes('secret'),
      );
    }
  });
});

describe('messages', () => {
  /** What a client could send, and a careless reader of it would take for something else. */
  const HOSTILE = 'a"} 1\n# HELP x\r\n{{ $labels.zone }}\u001b[31m\u202e${x}%s';

  test('a hostile name stays the value of its label, on one line', () => {
    const { labels, annotations } = describeAlert(
      { name: 'ZoneForgetsDebt', labels: { instance: 'web1', zone: HOSTILE }, value: 60 },
      { overrides: {} },
    );
    assert.deepEqual(Object.keys(labels), ['alertname', 'severity', 'instance', 'zone']);
    assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'runbook_url']);
    const shown = 'a"} 1\\u000a# HELP x\\u000d\\u000a{{ $labels.zone }}\\u001b[31m\\u202e${x}%s';
    assert.equal(labels['zone'], shown);
    assert.equal(annotations['summary'], `Zone ${shown} forgets keys that still have debt`);
    assert.equal(labels['severity'], 'warning');
  });

  test('a label can neither be named otherwise nor be longer than a bound', () => {
    const name = 'x'.repeat(5000);
    assert.equal(oneLine(name).length, 1025);
    const { labels } = describeAlert(
      { name: 'NoEvents', labels: { instance: name }, value: 1000 },
      { overrides: {} },
    );
    assert.ok(labels['instance']!.length < 1100);
  });

  test('whatever a name is, a message holds one line and no control character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (zone) => {
        const alert = {
          name: 'RejectRatioHigh',
          labels: { instance: 'w', zone },
          value: 1,
        } as const;
        const { labels, annotations } = describeAlert(alert, { overrides: {} });
        assert.equal(labels['alertname'], 'RejectRatioHigh');
        for (const text of [...Object.values(labels), ...Object.values(annotations)]) {
          assert.ok(!/[\p{Cc}\u2028\u2029\u202e]/u.test(text));
        }
      }),
      { seed: 1 },
    );
  });

  test('an alert as Alertmanager wants it', () => {
    const alert = {
      name: 'NoEvents',
      labels: { instance: 'web1' },
      state: 'firing',
      value: 1000,
      activeMs: 0,
      startsMs: 1000,
      endsMs: null,
    } as const;
    const options = { overrides: {}, externalUrl: 'http://h:1', runbooksUrl: 'https://w' };
    assert.deepEqual(postableAlert(alert, 5000, options), {
      labels: { alertname: 'NoEvents', severity: 'warning', instance: 'web1' },
      annotations: {
        summary: 'limitlens sees no requests of web1',
        description:
          'The newest line of web1 that was counted is 16m 40s old. Either there is no traffic, or ' +
          'the logs are no longer read.',
        runbook_url: 'https://w/no-events.md',
      },
      startsAt: '1970-01-01T00:00:01.000Z',
      endsAt: '1970-01-01T00:00:05.000Z',
      generatorURL: 'http://h:1',
    });
    const resolved = postableAlert({ ...alert, state: 'resolved', endsMs: 3000 }, 5000, options);
    assert.equal(resolved.endsAt, '1970-01-01T00:00:03.000Z');
  });

  test('the body of a webhook sums up what its alerts share', () => {
    const one = (zone: string, status: 'firing' | 'resolved') => ({
      status,
      labels: { alertname: 'RejectRatioHigh', zone },
      annotations: {},
      startsAt: '',
      endsAt: '',
      generatorURL: '',
      fingerprint: zone,
      value: 1,
    });
    const body = JSON.parse(
      webhookBody([one('a', 'resolved'), one('b', 'firing')], 'web1', 'http://h'),
    ) as Record<string, unknown>;
    assert.equal(body['version'], '4');
    assert.equal(body['status'], 'firing');
    assert.deepEqual(body['commonLabels'], { alertname: 'RejectRatioHigh' });
    const over = webhookBody([one('a', 'resolved')], 'web1', 'http://h');
    assert.equal((JSON.parse(over) as { status: string }).status, 'resolved');
  });

  test('a signature as the specification of Standard Webhooks computes it', () => {
    // The example that the specification's own libraries are tested with.
    const key = signingKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
    const headers = signatureHeaders(id, 1_614_265_330_000, '{"test": 2432232314}', key);
    assert.deepEqual(headers, {
      'webhook-id': id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
    assert.equal(signingKey('plain words').toString(), 'plain words');
    assert.equal('webhook-signature' in signatureHeaders(id, 0, '', undefined), false);
  });

  test('Retry-After in seconds or as a date, within an hour', () => {
    const nowMs = Date.parse('2026-03-02T10:00:00Z');
    const cases: readonly [string | null, number | undefined][] = [
      [null, undefined],
      ['7', 7000],
      ['Mon, 02 Mar 2026 10:00:30 GMT', 30_000],
      ['Mon, 02 Mar 2026 09:00:00 GMT', 0],
      ['999999999', 3_600_000],
      ['soon', undefined],
    ];
    for (const [header, expected] of cases) {
      assert.equal(parseRetryAfter(header, nowMs), expected);
    }
  });
});
