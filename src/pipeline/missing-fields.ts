/**
 * What an access log does not tell, and what a replay then does without: one note for each format.
 */
import type { AccessFile } from './log-files.js';

const LACKS: readonly { readonly field: string; readonly so: string }[] = [
  { field: 'msec', so: 'times are whole seconds, so bounds are wide' },
  { field: 'request_time', so: "a request's end stands for its decision" },
  { field: 'limit_req_status', so: 'outcomes are inferred from the status and the error log' },
  { field: 'connection', so: 'error-log lines are matched by client, request, host and second' },
];

/** @returns one note for each log_format that lacks something, none when all is there */
export function missingFieldNotes(files: readonly AccessFile[]): string[] {
  const notes = new Map<string, string>();
  for (const { scanner, head } of files) {
    const { name, text } = scanner.format;
    const lacks = LACKS.filter(({ field }) => scanner.indexOf(field) < 0);
    if (lacks.length === 0 || notes.has(text)) continue;
    const fields = lacks.map(({ field }) => `$${field}`).join(' ');
    notes.set(
      text,
      `${head.path}: log_format "${name}" does without ${fields}: ${lacks.map(({ so }) => so).join('; ')}\n` +
        `  Log ${lacks.length === 1 ? 'it' : 'them'} as well, and the replay of new logs is exact to the millisecond.`,
    );
  }
  return [...notes.values()];
}
