/**
 * Which errors pass, and how long is waited between attempts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayPass, retry, type RetryPolicy } from '../src/store/retry.js';

class Coded extends Error {
  readonly code: string;
  readonly type: string | undefined;
  constructor(code: string, type?: string) {
    super(`error ${code}`);
    this.code = code;
    this.type = type;
  }
}

const cases: readonly [string, unknown, boolean][] = [
  ['connection refused', new Coded('ECONNREFUSED'), true],
  ['connection reset', new Coded('ECONNRESET'), true],
  ['name lookup that may work later', new Coded('EAI_AGAIN'), true],
  ['no such name', new Coded('ENOTFOUND'), false],
  ['certificate', new Coded('CERT_HAS_EXPIRED'), false],
  ['the client’s timeout', new Error('Timeout error.'), true],
  ['the client’s abort', new Error('The user aborted a request.'), true],
  ['node’s hang up', new Error('socket hang up'), true],
  ['a proxy’s page', new Error('<html>502</html>'), true],
  ['an empty answer', new Error(''), true],
  ['MEMORY_LIMIT_EXCEEDED', new Coded('241', 'MEMORY_LIMIT_EXCEEDED'), true],
  ['KEEPER_EXCEPTION', new Coded('999', 'KEEPER_EXCEPTION'), true],
  ['TYPE_MISMATCH', new Coded('53', 'TYPE_MISMATCH'), false],
  ['CANNOT_PARSE_TEXT', new Coded('6', 'CANNOT_PARSE_TEXT'), false],
  ['SYNTAX_ERROR', new Coded('62', 'SYNTAX_ERROR'), false],
  ['UNKNOWN_TABLE', new Coded('60', 'UNKNOWN_TABLE'), false],
  ['AUTHENTICATION_FAILED', new Coded('516', 'AUTHENTICATION_FAILED'), false],
  ['TIMEOUT_EXCEEDED', new Coded('159', 'TIMEOUT_EXCEEDED'), false],
  ['a bug', new TypeError('x is not a function'), false],
  ['a bug in parameters', new Error('Unsupported value in query parameters: [Symbol(x)].'), false],
  ['no error at all', undefined, false],
];
for (const [what, error, expected] of cases) {
  test(`${what}: ${expected ? 'may pass' : 'is final'}`, () => {
    assert.equal(mayPass(error), expected);
  });
}

function policyOf(waitsMs: number[], random = 0): RetryPolicy {
  return {
    attempts: 6,
    firstWaitMs: 200,
    longestWaitMs: 1000,
    wait: (ms) => Promise.resolve(waitsMs.push(ms)),
    random: () => random,
  };
}

test('waits double up to the longest, and the last error is thrown as it came', async () => {
  const waitsMs: number[] = [];
  const errors = [1, 2, 3, 4, 5, 6].map(() => new Coded('ECONNRESET'));
  let runs = 0;
  const failing = retry(() => Promise.reject(errors[runs++] ?? new Error('once too often')), {
    ...policyOf(waitsMs),
  });
  await assert.rejects(failing, (error) => error === errors[5]);
  assert.equal(runs, 6);
  assert.deepEqual(waitsMs, [200, 400, 800, 1000, 1000]);
});

test('chance shortens a wait by half at most', async () => {
  const waitsMs: number[] = [];
  let runs = 0;
  const action = () => {
    runs++;
    return runs < 3 ? Promise.reject(new Coded('EPIPE')) : Promise.resolve('done');
  };
  assert.equal(await retry(action, policyOf(waitsMs, 0.999)), 'done');
  assert.deepEqual(waitsMs.map(Math.round), [100, 200]);
});

test('a final error is not waited for', async () => {
  const waitsMs: number[] = [];
  const action = () => Promise.reject(new Coded('62', 'SYNTAX_ERROR'));
  await assert.rejects(retry(action, policyOf(waitsMs)), /error 62/);
  assert.deepEqual(waitsMs, []);
});
