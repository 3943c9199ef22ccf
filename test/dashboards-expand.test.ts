/**
 * Grafana's expansion of macros and variables: the SQL that comes out, word by word.
 *
 * Expectations follow the data source's own source text (Datasource.applyConditionalAll, its
 * format(), pkg/macros) and Grafana's format registry.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chosen, equals } from '../dashboards/catalogue/conditions.js';
import { variableValue } from '../dashboards/catalogue/variables.js';
import { ALL, expand, type TimeRange, type VariableValue } from '../dashboards/expand.js';

const RANGE: TimeRange = { fromMs: 1_794_000_000_999, toMs: 1_794_000_060_001, intervalMs: 20_500 };

const CASES: readonly (readonly [
  sql: string,
  variables: Readonly<Record<string, VariableValue>>,
  expected: string,
])[] = [
  [
    'WHERE $__timeFilter(bucket)',
    {},
    'WHERE bucket >= toDateTime(1794000000) AND bucket <= toDateTime(1794000060)',
  ],
  [
    '$__timeFilter_ms(t)',
    {},
    't >= fromUnixTimestamp64Milli(1794000000999) AND t <= fromUnixTimestamp64Milli(1794000060001)',
  ],
  [
    'SELECT $__timeInterval(bucket) AS time, n / $__interval_s',
    {},
    'SELECT toStartOfInterval(toDateTime(bucket), INTERVAL 20 second) AS time, n / 20',
  ],
  [
    'a <= $__toTime AND b >= $__fromTime',
    {},
    'a <= toDateTime(1794000060) AND b >= toDateTime(1794000000)',
  ],
  ['$__conditionalAll(z IN (${z:singlequote}), $z)', { z: ALL }, '1=1'],
  ['$__conditionalAll(z IN (${z:singlequote}), $z)', { z: '' }, '1=1'],
  ['$__conditionalAll(z IN (${z:singlequote}), $z)', { z: [] }, '1=1'],
  ['$__conditionalAll(z IN (${z:singlequote}), ${z})', { z: ['a', "b'"] }, "z IN ('a','b\\'')"],
  ['$__conditionalAll(f(a, $__conditionalAll(b = $z, $z)), $y)', { y: 'Y', z: ALL }, 'f(a, 1=1)'],
  ['x IN ($z)', { z: ['a', "b'"] }, "x IN ('a','b'')"],
  ['x = $z', { z: 'raw' }, 'x = raw'],
  ["'${z:percentencode}'", { z: ["a'", 'b'] }, "'%7Ba%27%2Cb%7D'"],
  ["'${z:percentencode}'", { z: 'é(*)!~' }, "'%C3%A9%28%2A%29%21~'"],
  // What the format leaves open, and why no panel uses it.
  ['k = ${k:singlequote}', { k: "\\' OR 1=1 --" }, "k = '\\\\' OR 1=1 --'"],
  ['k = ${k:singlequote}', { k: '$__interval_s' }, "k = '20'"],
];

for (const [sql, variables, expected] of CASES) {
  test(`expands ${sql} with ${JSON.stringify(variables)}`, () => {
    assert.equal(expand(sql, RANGE, variables), expected);
  });
}

test('the smallest step is a second', () => {
  assert.equal(expand('$__interval_s', { ...RANGE, intervalMs: 100 }, {}), '1');
});

const REFUSED: readonly (readonly [string, Readonly<Record<string, VariableValue>>, RegExp])[] = [
  ['$nowhere', {}, /no variable \$nowhere/],
  ['$constructor', {}, /no variable \$constructor/],
  ['$__conditionalAll(a = $z, $q)', { z: 'a' }, /no variable \$q/],
  ['$__conditionalAll(a, b, $z)', { z: 'a' }, /with 3 arguments/],
  ['$__conditionalAll(a, ${z:csv})', { z: 'a' }, /of  \$\{z:csv\}/],
  ['$__conditionalAll(a, $z', { z: 'a' }, /does not end/],
  ['z = $z', { z: ALL }, /All of \$z outside/],
  ['${z:html}', { z: 'a' }, /no format of variables is called html/],
  ['$__timeFilter()', {}, /\$__timeFilter with 0 arguments/],
  ['$__timeFilter(a, b)', {}, /\$__timeFilter with 2 arguments/],
  ['$__interval_s(a)', {}, /\$__interval_s with 1 arguments/],
];

for (const [sql, variables, message] of REFUSED) {
  test(`refuses ${sql}`, () => {
    assert.throws(() => expand(sql, RANGE, variables), message);
  });
}

test('leaves a macro that it does not know as it stands', () => {
  assert.equal(expand('$__adHocFilters(t)', RANGE, {}), '$__adHocFilters(t)');
});

test('no value of a variable adds a quote, a backslash or a macro to a condition', () => {
  const sql = `${chosen('zone', 'zone')} AND ${equals('key', 'key')}`;
  const shape = (text: string) => text.replace(/[A-Za-z0-9%._~-]+/g, 'x');
  const plain = shape(expand(sql, RANGE, { zone: ['a'], key: 'k' }));
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme-ascii' }));
  fc.assert(
    fc.property(fc.array(value, { minLength: 1 }), value, (zones, key) => {
      fc.pre(zones.toString() !== '' && zones.toString() !== ALL && key !== '' && key !== ALL);
      assert.equal(shape(expand(sql, RANGE, { zone: zones, key })), plain);
      const encoded = zones.map(variableValue);
      fc.pre(encoded.toString() !== '');
      assert.equal(shape(expand(sql, RANGE, { zone: encoded, key: variableValue(key) })), plain);
    }),
  );
});
