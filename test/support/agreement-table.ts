/**
 * Prints the table of the README: how a replay from access.log and error.log compares with nginx's
 * debug log on every trace, and how it does in an audit.
 */
import { measure } from './agreement.js';
import { TRACES } from './truth.js';

function percent(part: number, whole: number): string {
  return whole === 0 ? '-' : ((100 * part) / whole).toFixed(2);
}

const HEADER = [
  'trace',
  'requests',
  'verdict = logged %',
  'explained %',
  'possible',
  'truth in bounds %',
  'width median (ms·rate)',
  'width p95',
  'audit: verdict = logged %',
];

console.log(`| ${HEADER.join(' | ')} |`);
console.log(`|${HEADER.map(() => ' --- ').join('|')}|`);
for (const trace of TRACES) {
  const replayed = measure(trace, false);
  const audited = measure(trace, true);
  const cells = [
    trace,
    String(replayed.decided),
    percent(replayed.decided - replayed.wrong, replayed.decided),
    percent(replayed.decided - replayed.unexplained, replayed.decided),
    replayed.meanPossible.toFixed(3),
    percent(replayed.zoneRows - replayed.outside, replayed.zoneRows),
    replayed.medianWidthMs.toFixed(2),
    replayed.p95WidthMs.toFixed(1),
    percent(audited.decided - audited.wrong, audited.decided),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
