/**
 * The HTTP server: routes, logins, TLS, limits, how it ends.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { EXIT, InputError } from '../src/errors.js';
import { isLoopback, parseListen, urlOf } from '../src/http/listen-address.js';
import { HttpError, json, type Route } from '../src/http/route.js';
import { HttpServer, type HttpServerOptions } from '../src/http/server.js';
import { makeCertificate } from './support/certificate.js';
import { makeTempDir } from './support/temp-dir.js';

const TOKEN = 'a-token-of-some-length';

const ROUTES: readonly Route[] = [
  { path: '/open', isOpen: true, handle: () => ({ body: 'open\n' }) },
  { path: '/long', handle: () => ({ body: 'x'.repeat(5000) }) },
  { path: '/panel/*', handle: ({ rest, query }) => json({ rest, zone: query.get('zone') }) },
  { path: '/panel/fixed', handle: () => ({ body: 'fixed\n' }) },
  {
    path: '/echo',
    methods: ['POST'],
    bodyBytes: 100,
    handle: async (request) => ({ body: await request.body() }),
  },
  {
    path: '/bug',
    handle: () => {
      throw new Error('with a secret');
    },
  },
  {
    path: '/full',
    handle: () => {
      throw new HttpError(429, 'too many at once', { 'Retry-After': '1' });
    },
  },
  {
    path: '/store',
    handle: () => {
      throw new InputError('the store is away', EXIT.io);
    },
  },
];

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

class Asked {
  readonly server: HttpServer;
  readonly errors: string[];

  private constructor(server: HttpServer, errors: string[]) {
    this.server = server;
    this.errors = errors;
  }

  static async start(t: TestContext, options: Partial<HttpServerOptions> = {}): Promise<Asked> {
    const errors: string[] = [];
    const server = await HttpServer.start({
      listen: '127.0.0.1:0',
      routes: ROUTES,
      onError: (path, error) => errors.push(`${path}: ${(error as Error).message}`),
      env: {},
      ...options,
    });
    t.after(() => server.close());
    return new Asked(server, errors);
  }

  ask(path: string, options: Ask = {}): Promise<Answer> {
    const { method = 'GET', headers = {}, body, ca } = options;
    const ask = this.server.url.startsWith('https') ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const url = `${this.server.url}${path}`;
      const sent = ask(url, { method, headers, agent: false, ...(ca ? { ca } : {}) }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          const { statusCode: status = 0, headers: sentBack } = answer;
          resolve({ status, headers: sentBack, body: Buffer.concat(chunks) });
        });
        answer.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
}

interface Ask {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  readonly ca?: Buffer;
}

function basic(login: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
}

test('exact routes, one segment behind /*, HEAD, and what is refused', async (t) => {
  const { ask, errors } = bound(await Asked.start(t));
  assert.equal((await ask('/open')).body.toString(), 'open\n');
  assert.equal((await ask('/open?x=1')).status, 200);
  assert.equal((await ask('/panel/fixed')).body.toString(), 'fixed\n');
  assert.deepEqual(JSON.parse((await ask('/panel/a%2Fb%20c?zone=%C3%A4')).body.toString()), {
    rest: 'a/b c',
    zone: 'ä',
  });
  for (const path of ['/', '/open/', '/panel/', '/panel/a/b', '/panel', '/OPEN', '//open']) {
    assert.equal((await ask(path)).status, 404, path);
  }
  assert.equal((await ask('/panel/%ff')).status, 400);
  const head = await ask('/long', { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.headers['content-length'], '5000');
  assert.equal(head.body.length, 0);
  const post = await ask('/open', { method: 'POST' });
  assert.equal(post.status, 405);
  assert.equal(post.headers.allow, 'GET, HEAD');
  assert.deepEqual(errors, []);
});

test('errors: those of the client are told, those of ours only to the log', async (t) => {
  const { ask, errors } = bound(await Asked.start(t));
  const full = await ask('/full');
  assert.equal(full.status, 429);
  assert.equal(full.headers['retry-after'], '1');
  const bug = await ask('/bug', { headers: { accept: 'application/json' } });
  assert.equal(bug.status, 500);
  assert.deepEqual(JSON.parse(bug.body.toString()), { error: 'an error of limitlens' });
  const away = await ask('/store');
  assert.equal(away.status, 503);
  assert.equal(away.body.toString(), 'the store is away\n');
  assert.deepEqual(errors, ['/bug: with a secret', '/store: the store is away']);
});

test('headers of every answer, and gzip for who takes it', async (t) => {
  const { ask } = bound(await Asked.start(t));
  for (const path of ['/open', '/nothing']) {
    const { headers } = await ask(path);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'");
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['referrer-policy'], 'no-referrer');
  }
  const packed = await ask('/long', { headers: { 'accept-encoding': 'br, gzip' } });
  assert.equal(packed.headers['content-encoding'], 'gzip');
  assert.ok(packed.body.length < 200);
  for (const encoding of ['identity', 'gzip;q=0', 'gzip; q=0.0, br']) {
    const plain = await ask('/long', { headers: { 'accept-encoding': encoding } });
    assert.equal(plain.headers['content-encoding'], undefined, encoding);
    assert.equal(plain.body.length, 5000);
  }
});

test('bodies: bounded as sent and as unpacked', async (t) => {
  const { gzipSync } = await import('node:zlib');
  const { ask } = bound(await Asked.start(t));
  const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    ask('/echo', { method: 'POST', body, headers });
  assert.equal((await post('x'.repeat(100))).status, 200);
  assert.equal((await post('x'.repeat(101))).status, 413);
  const chunked = { 'transfer-encoding': 'chunked' };
  assert.equal((await post('x'.repeat(101), chunked)).status, 413);
  const gzip = { 'content-encoding': 'gzip' };
  assert.equal((await post(gzipSync('hello'), gzip)).body.toString(), 'hello');
  assert.equal((await post(gzipSync('x'.repeat(50_000)), gzip)).status, 413);
  assert.equal((await post('no gzip', gzip)).status, 400);
  assert.equal((await post('x', { 'content-encoding': 'br' })).status, 415);
});

test('a token, or a login; open paths stay open, and nobody learns what there is', async (t) => {
  const folder = makeTempDir(t);
  const file = join(folder, 'users');
  writeFileSync(file, '# who\nprom:pass:word\n\nöps:gäste\n');
  const asked = await Asked.start(t, { httpBasicFile: file, env: { LIMITLENS_TOKEN: TOKEN } });
  const { ask } = bound(asked);
  assert.equal((await ask('/open')).status, 200);
  const refused = await ask('/long');
  assert.equal(refused.status, 401);
  assert.match(String(refused.headers['www-authenticate']), /^Basic realm="limitlens"/);
  assert.equal((await ask('/nothing')).status, 401);
  const good = [
    { authorization: `Bearer ${TOKEN}` },
    { authorization: `bearer  ${TOKEN}` },
    basic('prom:pass:word'),
    basic('öps:gäste'),
    basic(`token:${TOKEN}`),
  ];
  for (const headers of good) assert.equal((await ask('/long', { headers })).status, 200);
  const bad = [
    { authorization: `Bearer ${TOKEN}x` },
    { authorization: 'Bearer' },
    { authorization: TOKEN },
    { authorization: `Digest ${TOKEN}` },
    basic('prom:password'),
    basic('prom:'),
    basic(`other:${TOKEN}`),
    basic('# who'),
  ];
  for (const headers of bad) assert.equal((await ask('/long', { headers })).status, 401);
  assert.equal((await ask('/nothing', { headers: good[0]! })).status, 404);
  writeFileSync(file, 'prom:another\n');
  asked.server.reload();
  assert.equal((await ask('/long', { headers: basic('prom:pass:word') })).status, 401);
  assert.equal((await ask('/long', { headers: basic('prom:another') })).status, 200);
});

const badSecrets: readonly [string, string, RegExp][] = [
  ['httpTokenFile', 'short', /expected a token of at least 16/],
  ['httpTokenFile', 'two words that are long enough', /expected a token/],
  ['httpBasicFile', '', /:1: expected user:password, found no login/],
  ['httpBasicFile', 'a:b\nonly-a-name\n', /:2: expected user:password, found something else/],
  ['httpBasicFile', 'a:$2y$05$abcdefgh\n', /:1: expected user:password, found a hashed password/],
  ['httpBasicFile', 'a:{SHA}abcdefgh\n', /found a hashed password/],
];
for (const [option, content, message] of badSecrets) {
  test(`${option} refused: ${JSON.stringify(content)}`, async (t) => {
    const file = join(makeTempDir(t), 'secret');
    writeFileSync(file, content);
    await assert.rejects(Asked.start(t, { [option]: file }), (error: unknown) => {
      assert.ok(error instanceof InputError);
      assert.equal(error.exitCode, EXIT.configuration);
      assert.match(error.message, message);
      return true;
    });
    await assert.rejects(Asked.start(t, { [option]: `${file}.none` }), { exitCode: EXIT.noInput });
  });
}

test('on loopback without a login no foreign host name is taken', async (t) => {
  const { ask } = bound(await Asked.start(t));
  const hostOf = async (host: string): Promise<number> =>
    (await ask('/open', { headers: { host } })).status;
  for (const host of ['localhost', 'localhost:9545', '127.0.0.1:9545', '[::1]:9545', '10.0.0.7']) {
    assert.equal(await hostOf(host), 200, host);
  }
  for (const host of ['evil.example', 'localhost.evil.example:9545', 'a]b']) {
    assert.equal(await hostOf(host), 421, host);
  }
  const withLogin = bound(await Asked.start(t, { env: { LIMITLENS_TOKEN: TOKEN } }));
  assert.equal((await withLogin.ask('/open', { headers: { host: 'lens.example' } })).status, 200);
});

test('TLS from files, taken up anew; a bad new one keeps the old', async (t) => {
  const folder = makeTempDir(t);
  const files = makeCertificate(folder, 'first');
  const first = readFileSync(files.tlsCert);
  const asked = await Asked.start(t, files);
  const { ask } = bound(asked);
  assert.match(asked.server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  assert.equal((await ask('/open', { ca: first })).status, 200);
  makeCertificate(folder, 'second');
  const second = readFileSync(files.tlsCert);
  asked.server.reload();
  assert.equal((await ask('/open', { ca: second })).status, 200);
  await assert.rejects(ask('/open', { ca: first }));
  writeFileSync(files.tlsKey, 'no key');
  assert.throws(() => asked.server.reload(), { exitCode: EXIT.configuration });
  assert.equal((await ask('/open', { ca: second })).status, 200);
  await assert.rejects(Asked.start(t, { tlsCert: files.tlsCert }), { exitCode: EXIT.usage });
  chmodSync(files.tlsKey, 0o600);
  await assert.rejects(Asked.start(t, files), /expected a certificate and its key as PEM/);
});

test('what is not HTTP, and headers without an end, are cut off', async (t) => {
  const { server } = await Asked.start(t);
  const say = async (text: string): Promise<string> => {
    const socket = connect(server.address.port, '127.0.0.1');
    let said = '';
    socket.on('data', (data) => (said += String(data)));
    socket.on('error', () => undefined);
    socket.write(text);
    await once(socket, 'close');
    return said;
  };
  assert.match(await say('\x16\x03\x01 hello\r\n\r\n'), /^HTTP\/1\.1 400 /);
  assert.match(await say(`GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /);
});

test('ends with what is running, and ends streams', async (t) => {
  let release = (): void => undefined;
  const started = new Promise<void>((begin) => {
    release = begin;
  });
  const routes: Route[] = [
    {
      path: '/slow',
      handle: async ({ closing }) => {
        release();
        await once(closing, 'abort');
        return { body: 'done\n' };
      },
    },
    {
      path: '/events',
      handle: ({ closing }, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write('data: 1\n\n');
        closing.addEventListener('abort', () => response.end());
        return undefined;
      },
    },
  ];
  const asked = await Asked.start(t, { routes });
  const slow = asked.ask('/slow');
  const events = asked.ask('/events');
  await started;
  await asked.ask('/nothing');
  await asked.server.close();
  assert.equal((await slow).body.toString(), 'done\n');
  assert.equal((await events).body.toString(), 'data: 1\n\n');
  await assert.rejects(asked.ask('/slow'), { code: 'ECONNREFUSED' });
});

test('an address in use, or none at all', async (t) => {
  const { server } = await Asked.start(t);
  await assert.rejects(Asked.start(t, { listen: `127.0.0.1:${server.address.port}` }), {
    exitCode: EXIT.io,
  });
  await assert.rejects(Asked.start(t, { listen: 'x', listenOption: '--clickhouse-http' }), {
    exitCode: EXIT.usage,
    message: /^--clickhouse-http x: expected an address/,
  });
});

test('addresses to listen on', () => {
  assert.deepEqual(parseListen('127.0.0.1:9545'), { host: '127.0.0.1', port: 9545 });
  assert.deepEqual(parseListen('[::1]:80'), { host: '::1', port: 80 });
  assert.deepEqual(parseListen(':9545'), { host: undefined, port: 9545 });
  for (const bad of ['9545', 'host:', 'host:99999', '::1:80']) {
    assert.throws(() => parseListen(bad), /expected an address and port/);
  }
  assert.deepEqual(
    ['127.0.0.1', '127.9.9.9', '::1', 'localhost', undefined, '0.0.0.0', '127.evil.example'].map(
      isLoopback,
    ),
    [true, true, true, true, false, false, false],
  );
  assert.equal(urlOf('http', '::', 1), 'http://[::1]:1');
  assert.equal(urlOf('https', '0.0.0.0', 1), 'https://127.0.0.1:1');
});

function bound(asked: Asked): { ask: Asked['ask']; errors: string[] } {
  return { ask: asked.ask.bind(asked), errors: asked.errors };
}
