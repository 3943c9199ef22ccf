/**
 * The benchmark's corpus is worth measuring with only if it is what nginx would have logged.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileLogFormat } from '../parsers/access/line-scanner.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { LimitReqModel, STATUS } from '../src/limit-req/limits.js';
import { ZoneMemory } from '../src/limit-req/zone-memory.js';
import { LOG_FORMAT, makeClient, NGINX_CONF } from './bench/corpus-site.js';
import { type CorpusOptions, type CorpusSummary, makeCorpus } from './bench/corpus.js';
import { Random, Zipf } from './bench/random.js';

const SMALL = { lines: 20_000, seed: 7 } as const;

function corpusOf(options: CorpusOptions): { text: string; summary: CorpusSummary } {
  const chunks = makeCorpus(options);
  let text = '';
  for (;;) {
    const step = chunks.next();
    if (step.done === true) return { text, summary: step.value };
    text += step.value.toString('latin1');
  }
}

const { text, summary } = corpusOf(SMALL);
const lines = text.trimEnd().split('\n');

/** What a replay reads from a line, by the positions of the words behind the user agent. */
function replayFields(line: string) {
  const words = line.split(' ');
  const [msec, requestTime, upstreamTime, , limitReqStatus, , connection] = words.slice(-7);
  const endMs = Math.round(Number(msec) * 1000);
  return {
    client: words[0]!,
    decisionMs: endMs - Math.round(Number(requestTime) * 1000),
    endMs,
    requestMs: Math.round(Number(requestTime) * 1000),
    upstreamMs: upstreamTime === '-' ? 0 : Math.round(Number(upstreamTime) * 1000),
    limitReqStatus,
    connection: Number(connection),
    httpStatus: words[8]!,
  };
}

const fields = lines.map(replayFields);
const decided = [...fields].sort(
  (a, b) => a.decisionMs - b.decisionMs || a.connection - b.connection,
);

test('the same seed gives the same bytes, another seed others', () => {
  assert.ok(corpusOf(SMALL).text === text);
  assert.ok(corpusOf({ ...SMALL, seed: 8 }).text !== text);
});

test('every line fits the log_format that the configuration names', () => {
  const conf = parseConf('nginx.conf', { read: () => NGINX_CONF, glob: () => [] }, '');
  const format = conf.logFormats.get(conf.accessLogs[0]!.format)!;
  assert.equal(format.text, LOG_FORMAT);
  const scanner = compileLogFormat(format);
  for (const line of lines) {
    const bytes = Buffer.from(line, 'latin1');
    assert.equal(scanner.scan(bytes, 0, bytes.length), -1, line);
  }
});

test('one zone of 10r/s by address and a burst of 20 with delays', () => {
  const conf = parseConf('nginx.conf', { read: () => NGINX_CONF, glob: () => [] }, '');
  const zone = conf.reqZones.get('perip')!;
  assert.equal(zone.keyExpression, '$binary_remote_addr');
  assert.equal(zone.rateMilliRps, 10_000);
  assert.equal(zone.sizeBytes, 10 * 1024 * 1024);
  const [limit] = conf.ruleSets.flatMap((rules) => rules.limits);
  assert.equal(limit?.burstMilliReq, 20_000);
  assert.equal(limit.delayMilliReq, 0);
});

test('replayed in decision order, the limiter gives every logged status and delay', () => {
  const zone = new ZoneMemory({ sizeBytes: 10 * 1024 * 1024, nameLength: 5, rateMilliRps: 10_000 });
  const model = new LimitReqModel([zone]);
  const limits = [{ zone: 0, burstMilliReq: 20_000, delayMilliReq: 0 }];
  const words = new Map<number, string>([
    [STATUS.passed, 'PASSED'],
    [STATUS.delayed, 'DELAYED'],
    [STATUS.rejected, 'REJECTED'],
  ]);
  const keyIds = new Map<string, number>();
  for (const line of decided) {
    const keyId = keyIds.get(line.client) ?? keyIds.size;
    keyIds.set(line.client, keyId);
    const keyLength = line.client.includes(':') ? 16 : 4;
    const status = model.decide(limits, [keyId], [keyLength], line.decisionMs);
    assert.equal(words.get(status), line.limitReqStatus, `connection ${line.connection}`);
    const waitedMs = line.requestMs - line.upstreamMs;
    assert.ok(waitedMs >= model.delayMs && waitedMs <= model.delayMs + 1, `waited ${waitedMs} ms`);
  }
});

test('the summary counts what the lines say', () => {
  const count = (status: string) => fields.filter((f) => f.limitReqStatus === status).length;
  assert.deepEqual(summary, {
    lines: SMALL.lines,
    bytes: text.length,
    clients: new Set(fields.map((f) => f.client)).size,
    passed: count('PASSED'),
    delayed: count('DELAYED'),
    rejected: count('REJECTED'),
  });
  assert.equal(lines.length, SMALL.lines);
});

test('between 1 and 10 % are rejected, and as many delayed', () => {
  for (const count of [summary.rejected, summary.delayed]) {
    assert.ok(count >= 0.01 * SMALL.lines && count <= 0.1 * SMALL.lines, `${count} lines`);
  }
});

test('a line has about 245 bytes', () => {
  const mean = summary.bytes / summary.lines;
  assert.ok(mean > 240 && mean < 250, `${mean} bytes`);
});

test('word 9 is the status, 429 for rejected requests and for no others', () => {
  for (const { httpStatus, limitReqStatus } of fields) {
    assert.match(httpStatus, /^(?:200|304|404|429|503)$/);
    assert.equal(httpStatus === '429', limitReqStatus === 'REJECTED');
  }
});

test('lines stand in the order of their end, and decisions do not', () => {
  assert.ok(fields.every((f, i) => i === 0 || fields[i - 1]!.endMs <= f.endMs));
  assert.ok(fields.some((f, i) => i > 0 && fields[i - 1]!.decisionMs > f.decisionMs));
});

test('no two of 100,000 clients share an address, and one in ten has IPv6', () => {
  const addresses = Array.from({ length: 100_000 }, (_, rank) => makeClient(rank).address);
  assert.equal(new Set(addresses).size, 100_000);
  assert.equal(addresses.filter((address) => address.includes(':')).length, 10_000);
});

test('ranks come in the proportions of their weights', () => {
  const random = new Random(3);
  const zipf = new Zipf(4, 1);
  const counts = [0, 0, 0, 0];
  const draws = 100_000;
  for (let i = 0; i < draws; i++) counts[zipf.draw(random)]! += 1;
  // Weights 1, 1/2, 1/3, 1/4 of 25/12.
  for (const [rank, share] of [12 / 25, 6 / 25, 4 / 25, 3 / 25].entries()) {
    assert.ok(Math.abs(counts[rank]! / draws - share) < 0.01, `rank ${rank}: ${counts[rank]}`);
  }
});
