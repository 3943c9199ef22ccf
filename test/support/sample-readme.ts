/**
 * samples/README.md: where the logs come from and what nginx did while they were recorded.
 *
 * Counts are taken from the access log's own status fields; what only the debug log tells
 * (keys that a full zone forgot) is taken from there, since that file is not kept.
 */
import { LIMIT_FIELDS, type SiteOutcome } from './sample-site.js';
import type { TruthRequest } from './debug-truth.js';

/** How many requests ended in each way: server, $limit_req_status, $limit_conn_status, status. */
export function countOutcomes(accessLog: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of accessLog.trimEnd().split('\n')) {
    const { server, limitReq, limitConn, status } = readOutcome(line);
    const row = `${server} | ${limitReq} | ${limitConn} | ${status}`;
    counts.set(row, (counts.get(row) ?? 0) + 1);
  }
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function readOutcome(line: string): SiteOutcome {
  const groups = LIMIT_FIELDS.exec(line)?.groups;
  if (groups === undefined) throw new Error(`not a line of the sample's format: ${line}`);
  const { server = '', limitReq = '', limitConn = '', status = '' } = groups;
  return { server, limitReq, limitConn, status };
}

/** The text of the file. `truth` is all that a limiter looked at, in order. */
export function samplesReadme(accessLog: string, truth: readonly TruthRequest[]): string {
  const counts = countOutcomes(accessLog);
  const requests = [...counts.values()].reduce((sum, n) => sum + n, 0);
  const pages = truth.filter(({ requestLine }) => !/ \/(?:login|v1\/)/.test(requestLine));
  const forced = pages.filter(({ zones }) => zones.some((zone) => zone.failedAllocations > 0));
  const rows = [...counts].map(([row, n]) => `| ${row} | ${n} |`).join('\n');
  return `# Samples

Logs of a small shop, recorded with nginx 1.22.1 (Debian 12) and two workers: ${requests} requests
in 75 seconds. Nothing was edited; only the directories were others while recording. The traffic is
synthetic: addresses are from the documentation ranges and come from a balancer on the same host,
by X-Forwarded-For; names and keys are invented.

| file | what |
| --- | --- |
| nginx.conf | the configuration |
| access.log | all requests, in the format \`limits\` with every field that replay can use |
| error.log | level warn: what nginx delayed and rejected |

## What is in it

- \`/login\` (10r/m, burst=5 nodelay, by address): three addresses guess passwords. The one that
  keeps knocking stays limited; people who mistype do not notice.
- \`api.example\` (20r/s, burst=30 delay=10, by API key): a steady client, a batch job that sends 55
  requests at once, a partner above its rate, a client without a key, which no limit applies to.
- All other pages (5r/s, burst=10, by address) in **dry run**: pages that show many pictures would
  lose some. The zone has 32k, so 191 addresses, and more come by: nginx silently forgot
  ${forced.length} of them before their time.
- \`/downloads/\` (two connections per address): download managers open four.
- 429 and 503 that no limit is behind: the application's own quota and maintenance, and a
  \`return 503\` for the old shop.
- Headers that arrive in two pieces, and a TLS client on the plain port.

## What nginx decided

| server | limit_req_status | limit_conn_status | status | requests |
| --- | --- | --- | --- | --- |
${rows}

Recorded by \`node dist/test/support/make-samples.js\` after \`npm run build\`.
`;
}
