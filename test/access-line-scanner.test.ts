import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { decodeText, isAbsent, unescapeDefault, unescapeJson } from '../parsers/access/escape.js';
import {
  type Escape,
  LogFormatError,
  type LineScanner,
  compileLogFormat,
} from '../parsers/access/line-scanner.js';
import { PREDEFINED_FORMATS, predefinedFormat } from '../parsers/access/predefined.js';

function compile(text: string, escape: Escape = 'default'): LineScanner {
  return compileLogFormat({ name: 'test', escape, text });
}

/** Values by variable, still escaped, or the column where the line stops fitting. */
function read(scanner: LineScanner, line: string): Record<string, string> | number {
  // The line stands in the middle of a buffer, as in a real chunk.
  const bytes = Buffer.from(`\n${line}\nnext`, 'latin1');
  const column = scanner.scan(bytes, 1, 1 + Buffer.byteLength(line, 'latin1'));
  if (column >= 0) return column;
  return Object.fromEntries(
    scanner.variables.map((name, i) => [
      name,
      bytes.toString('latin1', scanner.starts[i], scanner.ends[i]),
    ]),
  );
}

const combined = compileLogFormat(predefinedFormat('combined')!);
const TAIL = '[02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-"';

describe('lines of combined', () => {
  const cases: readonly (readonly [string, Record<string, string>])[] = [
    [
      '192.0.2.66 - - [02/Mar/2026:10:00:00 +0000] "\\x16\\x03\\x01\\x00\\xA5\\x01" 400 150 "-" "-"',
      { request: '\\x16\\x03\\x01\\x00\\xA5\\x01', status: '400' },
    ],
    [
      '192.0.2.66 - - [02/Mar/2026:10:00:00 +0000] "" 400 0 "-" "-"',
      { request: '', status: '400' },
    ],
    ['192.0.2.66 - - [02/Mar/2026:10:00:00 +0000] "-" 000 0 "-" "-"', { status: '000' }],
    ['::1 - - [02/Mar/2026:10:00:00 -0330] "GET /" 009 5 "-" "-"', { status: '009' }],
    [`unix: - - ${TAIL}`, { remote_addr: 'unix:' }],
    [`192.0.2.7 - a user name ${TAIL}`, { remote_user: 'a user name' }],
    [
      `192.0.2.7 - x [02/Mar/2026:10:00:00 +0000] y ${TAIL}`,
      { remote_user: 'x [02/Mar/2026:10:00:00 +0000] y' },
    ],
    [`192.0.2.7 -  ${TAIL}`, { remote_user: '' }],
    [`192.0.2.7 - - ${TAIL}\r`, { http_user_agent: '-' }],
    [`192.0.2.7 - - ${TAIL}   `, { http_user_agent: '-' }],
    [
      '192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "caf\xe9"',
      { http_user_agent: 'caf\xe9' },
    ],
  ];
  for (const [line, expected] of cases) {
    test(JSON.stringify(line), () => {
      const values = read(combined, line);
      assert.equal(typeof values, 'object', `stopped at ${JSON.stringify(values)}`);
      assert.deepEqual({ ...(values as object), ...expected }, values);
    });
  }
});

describe('lines that do not fit say where, and what was expected', () => {
  const cases: readonly (readonly [string, number, string])[] = [
    ['', 0, '$remote_addr'],
    ['192.0.2.7 - - [02/Mar/2026:10:0', 31, '$time_local like 10/Oct/2026:13:55:36 +0000'],
    ['192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HT', 52, '"\\" " after $request'],
    [
      '192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 20 5 "-" "-"',
      62,
      '$status like 200',
    ],
    [`192.0.2.7 - - ${TAIL} "more"`, 14 + TAIL.length + 1, 'the end of the line'],
    ['not a log line', 4, '" - " after $remote_addr'],
  ];
  for (const [line, column, expected] of cases) {
    test(JSON.stringify(line), () => {
      const found = read(combined, line);
      assert.equal(typeof found, 'number');
      assert.equal(combined.expected().includes(expected), true, combined.expected());
      assert.equal(found, column);
    });
  }
});

describe('formats', () => {
  const OWN =
    '[$time_local] $upstream_cache_status $upstream_status $status - $request_method $scheme $host "$request_uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio] [Sent-to $server] "$http_user_agent" "$http_x_forwarded_for"';

  test('an own format of a proxy manager, and several addresses in one header', () => {
    const line =
      '[02/Mar/2026:16:40:25 +0000] - 200 200 - GET https a.example "/login" [Client 2001:db8::1234] [Length 1] [Gzip -] [Sent-to 198.51.100.9] "curl/8" "203.0.113.1, 198.51.100.2"';
    const values = read(compile(OWN), line) as Record<string, string>;
    assert.equal(values['remote_addr'], '2001:db8::1234');
    assert.equal(values['gzip_ratio'], '-');
    assert.equal(values['http_x_forwarded_for'], '203.0.113.1, 198.51.100.2');
  });

  test('several upstreams without quotes', () => {
    const scanner = compileLogFormat(predefinedFormat('upstreaminfo')!);
    const line = `192.0.2.7 - - ${TAIL} 300 0.123 [ns-web-80] [] 192.0.2.1:80, [2001:db8::2]:80 : unix:/run/x 5, 0 : 5 0.002, - : 0.010 502, 504 : 200 abc`;
    const values = read(scanner, line) as Record<string, string>;
    assert.equal(values['upstream_addr'], '192.0.2.1:80, [2001:db8::2]:80 : unix:/run/x');
    assert.equal(values['upstream_response_time'], '0.002, - : 0.010');
    assert.equal(values['upstream_status'], '502, 504 : 200');
    assert.equal(values['req_id'], 'abc');
  });

  test('a group of upstreams that was never reached', () => {
    const values = read(compile('$upstream_status|$status'), '502 : |502');
    assert.deepEqual(values, { upstream_status: '502 : ', status: '502' });
  });

  test('braces, a repeated variable, an absent one', () => {
    const scanner = compile('${status}0 $uri $status');
    assert.deepEqual(scanner.variables, ['status', 'uri', 'status']);
    assert.equal(scanner.indexOf('status'), 0);
    assert.equal(scanner.indexOf('msec'), -1);
    assert.deepEqual(read(scanner, '5030 /a b 503'), { status: '503', uri: '/a b' });
  });

  test('values that JSON leaves empty', () => {
    const scanner = compile('{"c":$connection,"t":$upstream_response_time,"u":"$uri"}', 'json');
    assert.deepEqual(read(scanner, '{"c":,"t":,"u":""}'), {
      connection: '',
      upstream_response_time: '',
      uri: '',
    });
  });

  test('a format without variables fits its text only', () => {
    assert.deepEqual(read(compile('hello'), 'hello'), {});
    assert.equal(read(compile('hello'), 'help'), 3);
  });

  test('a literal beyond ASCII is compared as the bytes of the configuration', () => {
    const line = Buffer.from('/a · 200', 'utf8').toString('latin1');
    assert.deepEqual(read(compile('$uri · $status'), line), { uri: '/a', status: '200' });
  });

  test('spaces at the end of the format may be lost', () => {
    assert.deepEqual(read(compile('"$uri" '), '"/a"'), { uri: '/a' });
  });

  for (const [text, column] of [
    ['$remote_addr $', 14],
    ['a ${status', 3],
    ['$status $-', 9],
  ] as const) {
    test(`refused as by nginx: ${text}`, () => {
      assert.throws(
        () => compile(text),
        (error: unknown) => error instanceof LogFormatError && error.column === column,
      );
    });
  }
});

describe('ambiguities', () => {
  const unique = [
    ...PREDEFINED_FORMATS.filter((format) => format.name !== 'upstreaminfo').map(
      (format) => [format.text, format.escape] as const,
    ),
    ['$remote_addr:$remote_port', 'default'],
    ['$remote_user $status $body_bytes_sent', 'default'],
    ['$uri [$time_local] $status', 'none'],
    ['$host\t$uri\t$args', 'default'],
    ['"$uri" "$args"', 'json'],
  ] as const;
  for (const [text, escape] of unique) {
    test(`none: ${escape} ${text}`, () => assert.deepEqual(compile(text, escape).ambiguities, []));
  }

  const ambiguous = [
    ['$uri $args', 'default', 'uri'],
    ['$host$uri', 'default', 'host'],
    ['"$request" "$http_user_agent"', 'none', 'request'],
    ['$upstream_status $http_x', 'default', 'upstream_status'],
    // The client may choose $req_id.
    [predefinedFormat('upstreaminfo')!.text, 'default', 'upstream_status'],
    ['$connection$pid', 'default', 'connection'],
  ] as const;
  for (const [text, escape, variable] of ambiguous) {
    test(`said: ${escape} ${text}`, () => {
      assert.deepEqual(compile(text, escape).ambiguities, [
        `the end of $${variable} can be read in several ways`,
      ]);
    });
  }

  test('escape=none: the last possible border counts', () => {
    const scanner = compile('"$request" $status "$http_user_agent"', 'none');
    const line = '"GET /"a" 200 "b HTTP/1.1" 404 "c"';
    assert.deepEqual(read(scanner, line), {
      request: 'GET /"a" 200 "b HTTP/1.1',
      status: '404',
      http_user_agent: 'c',
    });
  });

  test('a list takes no part of its neighbour that is no element', () => {
    const scanner = compile('$upstream_status $http_x');
    assert.deepEqual(read(scanner, '502, 200 : 5'), { upstream_status: '502, 200', http_x: ': 5' });
    assert.deepEqual(read(scanner, '200 12 34'), { upstream_status: '200', http_x: '12 34' });
  });

  test('a hostile line of an ambiguous format ends in bounded time', () => {
    const scanner = compile('$http_a $http_b $http_c $http_d $http_e|$status', 'none');
    const line = Buffer.from(`${'a '.repeat(4000)}|x`);
    assert.ok(scanner.scan(line, 0, line.length) > 0);
  });
});

// What nginx does to values: ngx_http_log_escape() and ngx_escape_json().
function escapeAsNginx(value: Uint8Array, escape: Escape): string {
  return Array.from(value, (byte) => {
    const char = String.fromCharCode(byte);
    const hex = byte.toString(16).toUpperCase().padStart(2, '0');
    const isSpecial = char === '"' || char === '\\';
    if (escape === 'default') return isSpecial || byte < 0x20 || byte > 0x7e ? `\\x${hex}` : char;
    if (escape === 'none') return char;
    if (isSpecial) return `\\${char}`;
    if (byte >= 0x20) return char;
    const short = { 8: 'b', 9: 't', 10: 'n', 12: 'f', 13: 'r' }[byte];
    return short === undefined ? `\\u00${hex}` : `\\${short}`;
  }).join('');
}

/** Bytes that look like the structure around them, between any others. */
const hostile = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc
        .constantFrom(
          ...[
            '" ',
            '"',
            '\\',
            '\\x22',
            '\\"',
            ' 200 ',
            ' "-" "-"',
            '] "',
            ' - ',
            '","status":500',
            ', ',
          ],
          ...[
            ' [02/Mar/2026:10:00:00 +0000] "',
            'PASSED',
            '\t',
            '-',
            ' : ',
            '{',
            '}',
            '\\u0022',
            ' ',
          ],
        )
        .map((text) => Buffer.from(text)),
    ),
    { maxLength: 6 },
  )
  .map((parts) => Buffer.concat(parts));

const digits = fc.nat(1e6).map(String);
const upstream = fc.constantFrom(
  '-',
  '200',
  '502, 200',
  '502 : 200',
  '502, 504 : 200, 201',
  '502 : ',
);

describe('no value can move a border', () => {
  const formats: readonly (readonly [string, Escape])[] = [
    [predefinedFormat('combined')!.text, 'default'],
    [`${predefinedFormat('combined')!.text} $limit_req_status $request_time`, 'default'],
    [predefinedFormat('upstreaminfo')!.text, 'default'],
    [predefinedFormat('limitlens')!.text, 'default'],
    [predefinedFormat('limitlens_json')!.text, 'json'],
    ['$host\t$uri\t$args\t$status', 'default'],
    ['$msec $http_a [$time_iso8601] $status', 'default'],
    ['$remote_addr:$remote_port $uri', 'default'],
    ['[$upstream_addr] $upstream_status,"$http_a"', 'default'],
    ['{"a":"$http_a","b":{"c":"$http_b"},"s":$status}', 'json'],
    ['"$http_a" $status', 'json'],
    ['$status $uri', 'none'],
    ['$uri $status [$time_local] $pid', 'none'],
  ];
  const known: Record<string, fc.Arbitrary<string>> = {
    remote_addr: fc.constantFrom('192.0.2.1', '2001:db8::1', 'unix:'),
    time_local: fc.constantFrom('02/Mar/2026:10:00:00 +0000', '31/Dec/2026:23:59:59 -0130'),
    time_iso8601: fc.constant('2026-03-02T10:00:00+00:00'),
    status: fc.constantFrom('200', '503', '000', '009'),
    msec: fc.constantFrom('1796022103.711', '0.001'),
    request_time: fc.constantFrom('0.000', '12.345'),
    limit_req_status: fc.constantFrom('PASSED', 'REJECTED_DRY_RUN', '-'),
    limit_conn_status: fc.constantFrom('PASSED', '-'),
    upstream_status: upstream,
    upstream_response_length: upstream,
    upstream_response_time: fc.constantFrom('-', '0.003', '0.003, - : 1.000', '0.001 : '),
    upstream_addr: fc.constantFrom('-', '192.0.2.1:80', '[2001:db8::1]:80, unix:/x : 192.0.2.2:80'),
    proxy_upstream_name: fc.constantFrom('ns-web-80', '-', 'a]b'),
    proxy_alternative_upstream_name: fc.constantFrom('-', 'ns-x-1'),
    request_id: fc.constant('739b24064636d89b79d54b2c1a7996db'),
    req_id: fc.constantFrom('abc', '739b24064636d89b', '-', 'a b', '5'),
    server_name: fc.constantFrom('a.example', '_', '-'),
    realip_remote_addr: fc.constant('198.51.100.1'),
    ...Object.fromEntries(
      ['body_bytes_sent', 'connection', 'connection_requests', 'pid', 'request_length'].map((n) => [
        n,
        digits,
      ]),
    ),
    remote_port: digits,
    server_port: digits,
  };

  for (const [text, escape] of formats) {
    const scanner = compile(text, escape);
    const variables = [...new Set(scanner.variables)];
    // Raw values hold no newline, or they would be two lines.
    const wild =
      escape === 'none'
        ? hostile.map((b) => b.filter((byte) => byte !== 10 && byte !== 13))
        : hostile;
    const record = fc.record(
      Object.fromEntries(
        variables.map((name) => [name, known[name]?.map((value) => Buffer.from(value)) ?? wild]),
      ),
    );
    test(`${escape}: ${text}`, () => {
      fc.assert(
        fc.property(record, (values) => {
          const line = text.replace(/\$(\w+)/g, (_, name: string) =>
            escapeAsNginx(values[name]!, escape),
          );
          const bytes = Buffer.from(line, 'latin1');
          assert.equal(scanner.scan(bytes, 0, bytes.length), -1, scanner.expected());
          const undo = escape === 'json' ? unescapeJson : unescapeDefault;
          for (const [i, name] of scanner.variables.entries()) {
            const start = scanner.starts[i]!;
            const end = scanner.ends[i]!;
            const out = Buffer.alloc(end - start);
            const value =
              escape === 'none'
                ? bytes.subarray(start, end)
                : out.subarray(0, undo(bytes, start, end, out, 0));
            assert.equal(
              value.toString('latin1'),
              Buffer.from(values[name]!).toString('latin1'),
              name,
            );
          }
        }),
        { numRuns: 300 },
      );
    });
  }

  test('the scan never throws, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        for (const format of PREDEFINED_FORMATS) {
          const found = compileLogFormat(format).scan(bytes, 0, bytes.length);
          assert.ok(found >= 0 && found <= bytes.length);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('escapes', () => {
  const cases: readonly (readonly [string, Escape, string])[] = [
    ['a\\x22b\\x5C', 'default', 'a"b\\'],
    ['\\xC3\\xA9', 'default', 'é'],
    ['\\xFF', 'default', '\ufffd'],
    ['\\x2', 'default', '\\x2'],
    ['\\xZZ', 'default', '\\xZZ'],
    ['\\', 'json', '\\'],
    ['a\\"\\\\\\n\\u001F\\/', 'json', 'a"\\\n\u001f/'],
    ['\\u12', 'json', '\\u12'],
    ['\\u00zz', 'json', '\\u00zz'],
    ['\\x22', 'none', '\\x22'],
    ['caf\xc3\xa9', 'json', 'café'],
  ];
  for (const [raw, escape, text] of cases) {
    test(`${escape}: ${raw}`, () => {
      const bytes = Buffer.from(`<${raw}>`, 'latin1');
      assert.equal(decodeText(bytes, 1, bytes.length - 1, escape), text);
    });
  }

  test('what is absent', () => {
    const bytes = Buffer.from('--');
    const answers = (['default', 'json', 'none'] as const).map((escape) =>
      [0, 1, 2].map((length) => isAbsent(bytes, 0, length, escape)),
    );
    assert.deepEqual(answers, [
      [true, true, false],
      [true, false, false],
      [true, false, false],
    ]);
  });
});
