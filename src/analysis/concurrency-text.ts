/**
 * The analysis of concurrency for a terminal.
 */
import { durationText } from '../report/durations.js';
import { cell, count, share, table } from '../report/table.js';
import type { ConcurrencyAnalysis, SubjectConcurrency } from './concurrency.js';
import type { ConfiguredAgreement } from './configured-conns.js';

/** Ends in a newline. */
export function concurrencyText(analysis: ConcurrencyAnalysis): string {
  const { all, subjects, configured, late, refusedByLimitConn, unknowns } = analysis;
  if (all.requests === 0) return 'There is no request in these logs.\n';
  const lines = [
    `All: ${count(all.requests)} requests, ${fixed(all.arrivalsPerSecond)} per second, each under way ` +
      `${durationText(all.meanMs)} on average: L = λW = ${fixed(all.concurrency)} at one time.`,
    `  At most ${count(all.most)}${at(all.mostAtMs)}; for half of the time ${count(all.p50)} or fewer, ` +
      `for 90 % ${count(all.p90)}, for 99 % ${count(all.p99)}.`,
    '',
    ...subjects.flatMap((subject) => [...subjectLines(subject), '']),
    ...(configured === null ? [] : configuredLines(configured)),
  ];
  if (late > 0) {
    lines.push(
      `${count(late)} requests took longer than --lateness and count from later on than they came: ` +
        'give a longer one.',
    );
  }
  lines.push('Not known from logs:', ...unknowns.map((text) => `  - ${text}`));
  if (refusedByLimitConn > 0) {
    lines.push(
      `  - How long ${count(refusedByLimitConn)} requests would have taken that limit_conn refused: a ` +
        'number above the one in force would refuse more than is shown.',
    );
  }
  return `${lines.join('\n')}\n`;
}

function fixed(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(1);
}

function at(ms: number | null): string {
  return ms === null ? '' : ` (${new Date(ms).toISOString()})`;
}

function subjectLines(subject: SubjectConcurrency): string[] {
  const { zone, keyExpression, requests, keys, isLowerBound, notLimited, withoutKey } = subject;
  const name =
    zone === null ? `Key ${cell(keyExpression)}` : `Zone ${cell(zone)} (${cell(keyExpression)})`;
  const lines = [
    `${name}: ${count(requests)} requests of ${isLowerBound ? 'at least ' : ''}${count(keys)} keys`,
  ];
  if (withoutKey > 0) lines.push(`  ${count(withoutKey)} requests whose key the log does not tell`);
  if (notLimited > 0) {
    lines.push(
      `  ${count(notLimited)} requests with an empty key, or one too long: nginx counts none`,
    );
  }
  if (requests === 0) return lines;
  lines.push(
    `  A key with requests under way has at most ${count(subject.most)}; ${count(subject.p50)} or fewer for ` +
      `half of that time, ${count(subject.p90)} for 90 %, ${count(subject.p99)} for 99 %.`,
    ...worst(subject).map((line) => `  ${line}`),
    ...candidates(subject).map((line) => `  ${line}`),
  );
  return lines;
}

function worst({ worstKeys }: SubjectConcurrency): string[] {
  const titles = ['requests', 'per s', 'under way', 'L = λW', 'most'];
  return table(
    [
      { title: 'WORST KEYS' },
      ...titles.map((title) => ({ title, isNumber: true })),
      { title: 'at' },
    ],
    worstKeys.map((row) => [
      cell(row.key, 48),
      count(row.requests),
      fixed(row.arrivalsPerSecond),
      durationText(row.meanMs),
      fixed(row.concurrency),
      count(row.most),
      new Date(row.mostAtMs).toISOString(),
    ]),
  );
}

/** Up to the first that would have refused nobody. */
function candidates(subject: SubjectConcurrency): string[] {
  const enough = subject.candidates.findIndex(({ rejected }) => rejected === 0);
  const shown = enough < 0 ? subject.candidates : subject.candidates.slice(0, enough + 1);
  const titles = ['would refuse', 'share', 'of keys'];
  return table(
    [{ title: 'LIMIT_CONN' }, ...titles.map((title) => ({ title, isNumber: true }))],
    shown.map((row) => [
      `${subject.zone === null ? 'limit_conn ZONE' : `limit_conn ${cell(subject.zone)}`} ${row.connections}`,
      count(row.rejected),
      share(row.rejected, subject.requests),
      count(row.keys),
    ]),
  );
}

function configuredLines(configured: ConfiguredAgreement): string[] {
  const { limits, requests, rejected, exhausted, loggedRejected, agree } = configured;
  if (limits.length === 0) return [];
  const lines = limits.map(
    (limit) =>
      `In force: limit_conn ${cell(limit.zone)} ${limit.connections} (${limit.where}): the model refuses ` +
      `${count(limit.rejected)}`,
  );
  if (exhausted > 0) {
    lines.push(`  ${count(exhausted)} of these for want of memory in the zone: make it larger`);
  }
  lines.push(
    loggedRejected === null || agree === null
      ? '  Log $limit_conn_status to hold that against nginx.'
      : `  nginx logged ${count(loggedRejected)} refusals of ${count(requests)} requests (the model ` +
          `${count(rejected)}); the two say the same of ${share(agree, requests)}.`,
  );
  return [...lines, ''];
}
