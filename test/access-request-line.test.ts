import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ArgRange, RequestLine, findArg } from '../parsers/access/request-line.js';

const line = new RequestLine();

/** [method, target, path, args, protocol]; null where absent. */
function split(text: string): (string | null)[] {
  const bytes = Buffer.from(`"${text}"`, 'latin1');
  const isRequest = line.split(bytes, 1, bytes.length - 1);
  const cut = (start: number, end: number): string | null =>
    start < 0 ? null : bytes.toString('latin1', start, end);
  const parts = [
    cut(line.methodStart, line.methodEnd),
    cut(line.targetStart, line.targetEnd),
    cut(line.pathStart, line.pathEnd),
    cut(line.argsStart, line.argsEnd),
    cut(line.protocolStart, line.protocolEnd),
  ];
  assert.equal(isRequest, parts[0] !== null);
  return parts;
}

const NOTHING = [null, null, null, null, null];

const cases: readonly (readonly [string, readonly (string | null)[]])[] = [
  ['GET /x?k=a&ms=9 HTTP/1.1', ['GET', '/x?k=a&ms=9', '/x', 'k=a&ms=9', 'HTTP/1.1']],
  ['GET / HTTP/2.0', ['GET', '/', '/', null, 'HTTP/2.0']],
  ['GET /old', ['GET', '/old', '/old', null, null]],
  ['GET /list/a&P1.html HTTP/2.0', ['GET', '/list/a&P1.html', '/list/a&P1.html', null, 'HTTP/2.0']],
  ['GET /? HTTP/1.1', ['GET', '/?', '/', '', 'HTTP/1.1']],
  ['GET /a?b?c HTTP/1.1', ['GET', '/a?b?c', '/a', 'b?c', 'HTTP/1.1']],
  ['GET /a?b#c HTTP/1.1', ['GET', '/a?b#c', '/a', 'b', 'HTTP/1.1']],
  ['GET /a#b?c HTTP/1.1', ['GET', '/a#b?c', '/a', null, 'HTTP/1.1']],
  ['GET /a b HTTP/1.1', ['GET', '/a b', '/a b', null, 'HTTP/1.1']],
  ['GET /a HTTP/x HTTP/1.1', ['GET', '/a HTTP/x', '/a HTTP/x', null, 'HTTP/1.1']],
  ['GET  /a  HTTP/1.1 ', ['GET', '/a', '/a', null, 'HTTP/1.1']],
  ['POST https://example.org/login', ['POST', 'https://example.org/login', '/login', null, null]],
  [
    'GET http://b.example/d?k=Q1 HTTP/1.1',
    ['GET', 'http://b.example/d?k=Q1', '/d', 'k=Q1', 'HTTP/1.1'],
  ],
  ['GET http://b.example HTTP/1.1', ['GET', 'http://b.example', '', null, 'HTTP/1.1']],
  ['GET http://b.example?x HTTP/1.1', ['GET', 'http://b.example?x', '', 'x', 'HTTP/1.1']],
  ['OPTIONS * HTTP/1.1', ['OPTIONS', '*', '*', null, 'HTTP/1.1']],
  ['M-SEARCH * HTTP/1.1', ['M-SEARCH', '*', '*', null, 'HTTP/1.1']],
  ['GET /\\x22\\x5C HTTP/1.1', ['GET', '/\\x22\\x5C', '/\\x22\\x5C', null, 'HTTP/1.1']],
  ['\\x16\\x03\\x01', NOTHING],
  ['', NOTHING],
  ['-', NOTHING],
  ['GET', NOTHING],
  ['GET ', NOTHING],
  ['get / HTTP/1.1', NOTHING],
  [' GET / HTTP/1.1', NOTHING],
];

describe('request lines', () => {
  for (const [text, parts] of cases) {
    test(JSON.stringify(text), () => assert.deepEqual(split(text), parts));
  }
});

function arg(args: string, name: string): string | null {
  const bytes = Buffer.from(`?${args}&`);
  const found: ArgRange = { start: -1, end: -1 };
  const isThere = findArg(bytes, 1, bytes.length - 1, Buffer.from(name), found);
  return isThere ? bytes.toString('latin1', found.start, found.end) : null;
}

/** [arguments, name, value] as ngx_http_arg() has it. */
const args: readonly (readonly [string, string, string | null])[] = [
  ['k=v', 'k', 'v'],
  ['a=1&k=v&b=2', 'k', 'v'],
  ['K=v', 'k', 'v'],
  ['k=first&k=second', 'k', 'first'],
  ['k=', 'k', ''],
  ['a&k=v', 'k', 'v'],
  ['k=%41=b', 'k', '%41=b'],
  ['&&k=v', 'k', 'v'],
  ['xk=1', 'k', null],
  ['k', 'k', null],
  ['k&k=v', 'k', 'v'],
  ['k1=v', 'k', null],
  ['a=k=v', 'k', null],
  ['', 'k', null],
];

describe('arguments', () => {
  for (const [text, name, value] of args) {
    test(`${name} of ${JSON.stringify(text)}`, () => assert.equal(arg(text, name), value));
  }

  test('a request without a query has none', () => {
    assert.equal(
      findArg(Buffer.from('k=v'), -1, -1, Buffer.from('k'), { start: 0, end: 0 }),
      false,
    );
  });
});
