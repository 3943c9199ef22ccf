/**
 * What an import says at its end, for a terminal.
 */
import type { ImportResult } from '../pipeline/import-logs.js';
import { cell, count, share, table } from '../report/table.js';

/** Error-log lines that went to no request of this import. */
function lineFates({ knownLines, waitingLines }: ImportResult): string[] {
  const fates: string[] = [];
  if (knownLines > 0) {
    fates.push(
      `${count(knownLines)} error-log lines are of requests counted before and change nothing ` +
        '(given with their access log in one call, they tell its excess)',
    );
  }
  if (waitingLines > 0) {
    fates.push(`${count(waitingLines)} error-log lines wait for the access log of their time`);
  }
  return fates;
}

export function importText(result: ImportResult, leftOut: number): string {
  const { summary, files } = result;
  const lines = table(
    [
      { title: 'LOG' },
      { title: 'format' },
      { title: 'lines', isNumber: true },
      { title: 'new bytes', isNumber: true },
      { title: 'known bytes', isNumber: true },
    ],
    files.map((file) => [
      cell(file.path),
      file.kind === 'access' ? cell(file.format ?? '') : file.kind,
      count(file.lines),
      count(file.newBytes),
      count(file.knownBytes),
    ]),
  );
  if (leftOut > 0) lines.push(`(${leftOut} left out, --all-logs reads them too)`);
  lines.push(
    '',
    `${count(summary.requests)} requests, ${count(summary.lines.limit_line)} error-log lines of limits`,
  );
  lines.push(...lineFates(result));
  if (summary.lines.unparsable > 0) {
    lines.push(
      `${count(summary.lines.unparsable)} lines could not be read (see the report, or --dead-letter FILE)`,
    );
  }
  for (const file of files) {
    if (file.unterminatedBytes > 0) {
      lines.push(
        `${cell(file.path)}: the last line has no end yet (${file.unterminatedBytes} bytes), left for next time`,
      );
    }
  }
  if (summary.compared > 0) {
    lines.push(
      `the replay agrees with the log on ${share(summary.agreement.agree, summary.compared)} of the decisions, ` +
        `and explains ${share(summary.agreement.explained, summary.compared)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}
