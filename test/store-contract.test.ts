/**
 * What a store promises, asked of the embedded engine and of a server alike.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { EXIT, InputError, type ExitCode } from '../src/errors.js';
import { ROWS_PER_INSERT, type Block, type Store, type StoreOptions } from '../src/store/store.js';
import { columnsOf } from '../src/store/tables.js';
import { blockToken, type Checkpoint, type Intent } from '../src/store/write-ahead.js';
import { STORE_KINDS, type StorePlace } from './support/store-kinds.js';

const INSTANCE = 'edge-1';

function agreementBlock(rows: number, zone = 'rz'): Block {
  return {
    table: 'agreement',
    columns: columnsOf('agreement'),
    rows: Array.from({ length: rows }, (_, n) => [INSTANCE, zone, 1_700_000_040, `class ${n}`, 1]),
  };
}

function intentOf(sequence: number, startedBy = 'host:1'): Intent {
  const range = { sourceId: 'a', fromByte: (sequence - 1) * 10, toByte: sequence * 10 };
  return { instance: INSTANCE, sequence, ranges: [range], startedBy };
}

function checkpointOf(sequence: number, state: string): Checkpoint {
  const progress = {
    ...{ sourceId: 'a', headHash: 'h\n"', headLength: 7, tailHash: 't', offset: sequence * 10 },
    ...{ lines: sequence, name: 'access.log', firstMs: 1, lastMs: 2, complete: false },
  };
  const logTimeMs = 1_700_000_000_123;
  return { instance: INSTANCE, sequence, sources: [progress], state, logTimeMs };
}

async function countAgreement(store: Store, zone = 'rz'): Promise<unknown> {
  return store.query(
    'SELECT sum(requests) AS requests, uniq(class) AS classes FROM agreement WHERE zone = {zone:String}',
    { zone },
  );
}

async function using<T>(
  place: StorePlace,
  action: (store: Store) => Promise<T>,
  options: Partial<StoreOptions> = {},
): Promise<T> {
  const store = await place.open(options);
  try {
    return await action(store);
  } finally {
    await store.close();
  }
}

function inputError(exitCode: ExitCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof InputError, String(error));
    assert.equal(error.exitCode, exitCode);
    assert.match(error.message, message);
    return true;
  };
}

for (const kind of STORE_KINDS) {
  test(`${kind.name}: one store`, async (t) => {
    const store = await (await kind.make(t)).open();
    t.after(() => store.close());
    await t.test('a block larger than one insert is counted whole, and once', async () => {
      const rows = 2 * ROWS_PER_INSERT + 1;
      const block: Block = {
        table: 'key_minutes',
        columns: ['instance', 'zone', 'key', 'minute', 'passed'],
        rows: Array.from({ length: rows }, (_, n) => [INSTANCE, 'rz', `k${n}`, 1_700_000_040, 2]),
      };
      await store.insertBlock(block, 'big');
      await store.insertBlock(block, 'big');
      const counted = await store.query(
        'SELECT sum(passed) AS passed, uniqExact(key) AS keys FROM key_minutes',
      );
      assert.deepEqual(counted, [{ passed: 2 * rows, keys: rows }]);
    });

    await t.test('an empty block is no error', async () => {
      await store.insertBlock(agreementBlock(0), 'empty');
      assert.deepEqual(await countAgreement(store), [{ requests: 0, classes: 0 }]);
    });

    await t.test('text comes back as it was, whatever a client sent', async () => {
      const texts = [
        ...[
          "'; DROP TABLE agreement; --",
          '{x:String}',
          '"quoted" \\ back\\slash',
          '\\N',
          '\\ud83d',
        ],
        ...['tab\there\r\nnew line', '\u0000\u0001\u007f\u0085', '\u2028 é 日本 \u{1f600}', ''],
      ];
      const rows = texts.map((raw, n) => [INSTANCE, 'access.log', n, 'why', raw]);
      const columns = columnsOf('unparsable_samples');
      await store.insertBlock({ table: 'unparsable_samples', columns, rows }, 'texts');
      const found = await store.query<{ raw: string }>(
        'SELECT raw FROM unparsable_samples ORDER BY offset',
      );
      assert.deepEqual(
        found.map(({ raw }) => raw),
        texts,
      );
      for (const raw of texts) {
        const sql = 'SELECT raw FROM unparsable_samples WHERE raw = {raw:String}';
        assert.deepEqual(await store.query(sql, { raw }), [{ raw }]);
      }
    });

    await t.test('half a surrogate pair does not cost the insert', async () => {
      const rows = [[INSTANCE, 'cut.log', 1, 'why', 'cut \ud83d, \u{1f600} whole']];
      const columns = columnsOf('unparsable_samples');
      await store.insertBlock({ table: 'unparsable_samples', columns, rows }, 'lone');
      assert.deepEqual(
        await store.query("SELECT raw FROM unparsable_samples WHERE source = 'cut.log'"),
        [{ raw: 'cut \ufffd, \u{1f600} whole' }],
      );
    });

    await t.test('numbers are numbers, and array parameters work', async () => {
      const rows = await store.query(
        `SELECT toUInt64(9007199254740991) AS big, toInt64(-1) AS small,
         arrayJoin({list:Array(String)}) AS item, {n:UInt32} AS n`,
        { list: ["it's", 'b\\\n'], n: 5 },
      );
      const same = { big: 9007199254740991, small: -1, n: 5 };
      assert.deepEqual(rows, [
        { ...same, item: "it's" },
        { ...same, item: 'b\\\n' },
      ]);
    });

    await t.test('a query ends when its time is over, and the next has its own', async () => {
      const endless = store.query('SELECT count() FROM numbers(1e15)', {}, { maxSeconds: 1 });
      await assert.rejects(endless, inputError(EXIT.io, /took longer than it may/));
      const setting = "SELECT toUInt32(getSetting('max_execution_time')) AS seconds";
      assert.deepEqual(await store.query(setting), [{ seconds: 60 }]);
    });

    await t.test('several queries and inserts at once', async () => {
      const numbers = [1, 2, 3, 4, 5];
      const inserts = numbers.map((n) => store.insertBlock(agreementBlock(n, 'many'), `t${n}`));
      const queries = numbers.map((n) => store.query('SELECT {n:UInt8} AS n', { n }));
      assert.deepEqual(
        await Promise.all(queries),
        numbers.map((n) => [{ n }]),
      );
      await Promise.all(inserts);
      assert.deepEqual(await countAgreement(store, 'many'), [{ requests: 15, classes: 5 }]);
    });

    await t.test('a mistake in a query is a bug, not advice', async () => {
      await assert.rejects(store.query('SELECT nosuch FROM agreement'), (error: Error) => {
        assert.ok(!(error instanceof InputError));
        assert.match(error.message, /nosuch/);
        return true;
      });
    });
  });

  test(`${kind.name}: a block is counted once, also after closing and opening`, async (t) => {
    const place = await kind.make(t);
    // More than the 100 blocks that ClickHouse's replicated tables used to remember by default.
    const blocks = 120;
    const insertFirst = async (store: Store, count: number) => {
      for (let n = 0; n < count; n++) {
        await store.insertBlock(agreementBlock(2), blockToken(intentOf(1), 'agreement', n));
      }
    };
    await using(place, (store) => insertFirst(store, blocks));
    await using(place, async (store) => {
      assert.deepEqual(await countAgreement(store), [{ requests: 2 * blocks, classes: 2 }]);
      await insertFirst(store, 10);
      assert.deepEqual(await countAgreement(store), [{ requests: 2 * blocks, classes: 2 }]);
      await store.insertBlock(agreementBlock(2), blockToken(intentOf(2), 'agreement', 0));
      assert.deepEqual(await countAgreement(store), [{ requests: 2 * blocks + 2, classes: 2 }]);
    });
  });

  test(`${kind.name}: close waits for what is running`, async (t) => {
    const place = await kind.make(t);
    const store = await place.open();
    const inserting = store.insertBlock(agreementBlock(3), 'late');
    await store.close();
    await inserting;
    const counted = await using(place, countAgreement);
    assert.deepEqual(counted, [{ requests: 3, classes: 3 }]);
  });

  test(`${kind.name}: intent, blocks, checkpoint; from 1 on, one after the other`, async (t) => {
    const place = await kind.make(t);
    const states = ['', 'two\nlines', 'x'.repeat(100), 'y'];
    await using(place, async (store) => {
      assert.equal(await store.checkpoint(INSTANCE), undefined);
      assert.equal(await store.pendingIntent(INSTANCE), undefined);
      for (const [index, state] of states.entries()) {
        const intent = intentOf(index + 1);
        await store.begin(intent);
        assert.deepEqual(await store.pendingIntent(INSTANCE), intent);
        await store.commit(intent, checkpointOf(index + 1, state));
        assert.equal(await store.pendingIntent(INSTANCE), undefined);
        assert.deepEqual(await store.checkpoint(INSTANCE), checkpointOf(index + 1, state));
      }
      assert.equal(await store.checkpoint('edge-2'), undefined);
      await assert.rejects(store.begin(intentOf(6)), /intent 6 after checkpoint 4/);
      await assert.rejects(store.begin(intentOf(4)), /intent 4 after checkpoint 4/);
    });
    await using(place, async (store) => {
      assert.deepEqual(await store.checkpoint(INSTANCE), checkpointOf(4, 'y'));
    });
  });

  test(`${kind.name}: an intent left open is found, and may be begun again as it was`, async (t) => {
    const place = await kind.make(t);
    await using(place, (store) => store.begin(intentOf(1, 'first:1')));
    await using(place, async (store) => {
      assert.deepEqual(await store.pendingIntent(INSTANCE), intentOf(1, 'first:1'));
      await store.begin(intentOf(1, 'second:2'));
      const other = { ...intentOf(1), ranges: [{ sourceId: 'b', fromByte: 0, toByte: 1 }] };
      await assert.rejects(store.begin(other), inputError(EXIT.io, /step 1 begun by first:1/));
    });
  });

  test(`${kind.name}: a state of megabytes that does not compress, twice over`, async (t) => {
    const state = randomBytes(2_200_000).toString('base64');
    await using(await kind.make(t), async (store) => {
      for (const sequence of [1, 2, 3]) {
        await store.begin(intentOf(sequence));
        const text = sequence === 3 ? 'short' : state + sequence;
        await store.commit(intentOf(sequence), checkpointOf(sequence, text));
        // Merged, as the engine does by itself some day: then parts of an older write are left over.
        await store.query('OPTIMIZE TABLE checkpoints FINAL');
        const found = await store.checkpoint(INSTANCE);
        assert.equal(found?.state === text, true, `state of ${sequence}`);
      }
    });
  });

  test(`${kind.name}: a checkpoint written in part leaves the one before it whole`, async (t) => {
    await using(await kind.make(t), async (store) => {
      await store.begin(intentOf(1));
      await store.commit(intentOf(1), checkpointOf(1, 'one'));
      await store.begin(intentOf(2));
      // What a write of two parts leaves behind when only its first arrives, merged as far as may be.
      await store.query(
        `INSERT INTO checkpoints (instance, slot, part, parts, sequence, write_id, chunk)
         SELECT {instance:String}, 2 % 2, 0, 2, 2, 'cut', 'H4s'`,
        { instance: INSTANCE },
      );
      await store.query('OPTIMIZE TABLE checkpoints FINAL');
      assert.deepEqual(await store.checkpoint(INSTANCE), checkpointOf(1, 'one'));
      assert.deepEqual(await store.pendingIntent(INSTANCE), intentOf(2));
      await store.commit(intentOf(2), checkpointOf(2, 'two'));
      await store.query('OPTIMIZE TABLE checkpoints FINAL');
      assert.deepEqual(await store.checkpoint(INSTANCE), checkpointOf(2, 'two'));
      assert.deepEqual(await store.query('SELECT count() AS parts FROM checkpoints'), [
        { parts: 2 },
      ]);
    });
  });

  test(`${kind.name}: opened to read, it neither makes nor writes`, async (t) => {
    const place = await kind.make(t);
    await assert.rejects(
      place.open({ readOnly: true }),
      inputError(EXIT.noInput, /limitlens store/),
    );
    await using(place, (store) => store.insertBlock(agreementBlock(1), 'one'));
    const read = async (store: Store) => {
      assert.deepEqual(await countAgreement(store), [{ requests: 1, classes: 1 }]);
      await assert.rejects(store.insertBlock(agreementBlock(1), 'two'), /opened to read/);
      await assert.rejects(store.begin(intentOf(1)), /opened to read/);
    };
    await using(place, read, { readOnly: true });
  });

  test(`${kind.name}: a missing store is not made unless wanted`, async (t) => {
    const place = await kind.make(t);
    const opening = place.open({ createIfMissing: false });
    await assert.rejects(opening, inputError(EXIT.noInput, /expected a limitlens store/));
  });

  test(`${kind.name}: another database of the same place is another store`, async (t) => {
    const place = await kind.make(t);
    await using(place, (store) => store.insertBlock(agreementBlock(1), 'one'));
    await using(
      place,
      async (store) => {
        assert.deepEqual(await countAgreement(store), [{ requests: 0, classes: 0 }]);
      },
      { database: 'other' },
    );
    const wrong = place.open({ database: 'a`; DROP' });
    await assert.rejects(wrong, inputError(EXIT.usage, /--database: expected a name/));
  });

  test(`${kind.name}: retention is changed when asked for, and only then`, async (t) => {
    const place = await kind.make(t);
    const ttls = async (store: Store) => {
      const rows = await store.query<{ ttl: string }>(
        `SELECT extract(engine_full, 'TTL (.+?) SETTINGS') AS ttl FROM system.tables
         WHERE database = 'limitlens' AND name IN ('examples', 'key_minutes', 'limits', 'responses')
         ORDER BY name`,
      );
      return rows.map(({ ttl }) => ttl);
    };
    const days = (n: number) => `stored + toIntervalDay(${n})`;
    const byDefault = [days(90), days(90), '', days(400)];
    assert.deepEqual(await using(place, ttls), byDefault);
    const retention = { bucketDays: null, keyDays: 7, sampleDays: 1 };
    const changed = [days(1), days(7), '', ''];
    assert.deepEqual(await using(place, ttls, { retention }), changed);
    assert.deepEqual(await using(place, ttls), changed);
  });
}
