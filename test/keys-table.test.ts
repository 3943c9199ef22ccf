import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyTable } from '../src/keys/key-table.js';

const bytesOf = (text: string) => Buffer.from(text, 'latin1');

function intern(table: KeyTable, text: string): number {
  const bytes = bytesOf(`<${text}>`);
  return table.intern(bytes, 1, text.length);
}

test('a key keeps its id, its bytes and its length', () => {
  const table = new KeyTable();
  const first = intern(table, '192.0.2.1');
  const second = intern(table, '192.0.2.2');
  assert.deepEqual([first, second], [0, 1]);
  assert.equal(intern(table, '192.0.2.1'), first);
  assert.equal(table.text(second), '192.0.2.2');
  assert.equal(table.length(second), 9);
  assert.equal(table.size, 2);
  assert.equal(table.find(bytesOf('192.0.2.3'), 0, 9), -1);
  assert.equal(table.find(bytesOf('192.0.2.10'), 0, 9), first);
});

test('text() shows bytes that are not UTF-8 as replacement characters', () => {
  const table = new KeyTable();
  const id = intern(table, 'a\xff\xc3\xa9');
  assert.equal(table.text(id), 'a\ufffdé');
  assert.deepEqual(table.bytesOf(id), new Uint8Array([0x61, 0xff, 0xc3, 0xa9]));
});

test('keys that differ by trailing zero bytes only are different', () => {
  const table = new KeyTable();
  const ids = ['', '\0', '\0\0', '\0\0\0', '\0\0\0\0', '\0\0\0\0\0', '\x01\0', '\0\x01'].map(
    (key) => intern(table, key),
  );
  assert.equal(new Set(ids).size, ids.length);
});

test('the id of a released key is given to the next new one, and only then', () => {
  const table = new KeyTable();
  const id = intern(table, 'a');
  table.retain(id);
  table.retain(id);
  table.release(id);
  assert.equal(table.find(bytesOf('a'), 0, 1), id);
  table.release(id);
  assert.equal(table.find(bytesOf('a'), 0, 1), -1);
  assert.equal(intern(table, 'b'), id);
  assert.equal(table.text(id), 'b');
});

test('discard() forgets a key that nobody holds, and leaves others alone', () => {
  const table = new KeyTable();
  const held = intern(table, 'held');
  table.retain(held);
  table.discard(held);
  const loose = intern(table, 'loose');
  table.discard(loose);
  assert.equal(table.text(held), 'held');
  assert.equal(table.find(bytesOf('loose'), 0, 5), -1);
});

test('using an id that is not held is a bug, and said so', () => {
  const table = new KeyTable();
  const id = intern(table, 'a');
  assert.throws(() => table.release(id), /released more often/);
  table.discard(id);
  for (const use of [
    () => table.retain(id),
    () => table.release(id),
    () => table.text(id),
    () => table.length(99),
    () => table.bytesOf(-1),
  ]) {
    assert.throws(use, /there is no key/);
  }
});

test('memory follows the keys that are held, not the keys that were seen', () => {
  const table = new KeyTable();
  const window: number[] = [];
  let peakBytes = 0;
  for (let i = 0; i < 200_000; i++) {
    const id = intern(table, `some-client-${i}`);
    table.retain(id);
    window.push(id);
    if (window.length > 1000) table.release(window.shift()!);
    peakBytes = Math.max(peakBytes, table.memoryBytes);
  }
  assert.equal(table.size, 1000);
  assert.ok(table.idLimit <= 1001);
  assert.ok(peakBytes < 250_000, `${peakBytes} bytes for 1000 keys of 18`);
});

test('clear() forgets all keys and their bytes', () => {
  const table = new KeyTable();
  for (let i = 0; i < 5000; i++) table.retain(intern(table, `${i}`.padStart(200, '-')));
  const fullBytes = table.memoryBytes;
  table.clear();
  assert.equal(table.size, 0);
  assert.ok(fullBytes - table.memoryBytes > 5000 * 200);
  assert.equal(table.find(bytesOf('1'.padStart(200, '-')), 0, 200), -1);
  assert.equal(intern(table, 'new'), 0);
});

test('a key as long as nginx takes is a key like others', () => {
  const table = new KeyTable();
  const long = intern(table, 'k'.repeat(65_535));
  const other = intern(table, `${'k'.repeat(65_534)}l`);
  assert.notEqual(long, other);
  assert.equal(table.length(long), 65_535);
  assert.equal(table.text(other).at(-1), 'l');
});

interface Reference {
  readonly id: number;
  refs: number;
}

/** Applies one step to the table and to a Map, and compares what both say. */
function step(table: KeyTable, model: Map<string, Reference>, action: string, key: string): void {
  const known = model.get(key);
  const id = table.find(bytesOf(key), 0, key.length);
  assert.equal(id, known === undefined ? -1 : known.id);
  if (action === 'intern') {
    const given = intern(table, key);
    if (known !== undefined) return assert.equal(given, known.id);
    for (const [other, { id: taken }] of model) assert.notEqual(given, taken, other);
    model.set(key, { id: given, refs: 0 });
  } else if (known === undefined) {
    return;
  } else if (action === 'retain') {
    table.retain(id);
    known.refs++;
  } else if (known.refs === 0) {
    table.discard(id);
    model.delete(key);
  } else {
    table.release(id);
    if (--known.refs === 0) model.delete(key);
  }
}

function assertSame(table: KeyTable, model: Map<string, Reference>): void {
  assert.equal(table.size, model.size);
  for (const [key, { id }] of model) {
    assert.equal(table.find(bytesOf(key), 0, key.length), id);
    assert.equal(Buffer.from(table.bytesOf(id)).toString('latin1'), key);
  }
}

const actions = fc.array(
  fc.tuple(fc.constantFrom('intern', 'intern', 'retain', 'release'), fc.nat(400), fc.nat(9)),
  { maxLength: 600 },
);

const keyOf = (number: number, pad: number) =>
  String.fromCharCode(
    ...Array.from({ length: number % 40 }, (_, i) => (number * 7 + i * pad) & 255),
  );

test('any sequence of intern, retain and release does what a Map would, also after a restore', () => {
  fc.assert(
    fc.property(actions, actions, (before, after) => {
      const model = new Map<string, Reference>();
      const table = new KeyTable();
      for (const [action, number, pad] of before) step(table, model, action, keyOf(number, pad));
      assertSame(table, model);

      const restored = KeyTable.restore(
        JSON.parse(JSON.stringify(table.snapshot())) as ReturnType<KeyTable['snapshot']>,
      );
      assertSame(restored, model);
      const copy = new Map([...model].map(([key, entry]) => [key, { ...entry }]));
      for (const [action, number, pad] of after) {
        step(table, model, action, keyOf(number, pad));
        step(restored, copy, action, keyOf(number, pad));
      }
      assertSame(table, model);
      assert.deepEqual([...copy], [...model]);
    }),
    { numRuns: 150 },
  );
});

test('growth and shrinking over many keys loses none', () => {
  const table = new KeyTable();
  const ids = Array.from({ length: 20_000 }, (_, i) => intern(table, `key-${i}`));
  for (const id of ids) table.retain(id);
  for (let i = 0; i < ids.length; i += 3) table.release(ids[i]!);
  const restored = KeyTable.restore(table.snapshot());
  for (const each of [table, restored]) {
    ids.forEach((id, i) => {
      const key = bytesOf(`key-${i}`);
      assert.equal(each.find(key, 0, key.length), i % 3 === 0 ? -1 : id);
    });
    assert.equal(each.size, ids.length - Math.ceil(ids.length / 3));
  }
});
