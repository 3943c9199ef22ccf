/**
 * How far the page can be believed: replay against log, what the logs do not tell, which lines could
 * not be read; and what the dry run would have done.
 */
import { isoTime } from './html-chart.js';
import { markup, NOTHING, shown, type Markup } from './html-markup.js';
import { htmlTable, type HtmlColumn } from './html-table.js';
import type { Report, ZoneReport } from './report.js';
import { count, share } from './table.js';

/** What of the analysis of a dry run is shown (src/analysis/dry-run.ts). */
export interface DryRunShown {
  readonly verdict: string;
  readonly rules: readonly {
    readonly zone: string;
    readonly places: readonly { readonly server: string; readonly location: string }[];
    readonly where: string | null;
    readonly requests: number;
    readonly wouldDelay: number;
    readonly wouldReject: number;
    readonly rejectedShare: number;
    readonly verdict: string;
    readonly reasons: readonly string[];
  }[];
  readonly differences: readonly string[];
}

const VERDICTS: Readonly<Record<string, string>> = {
  safe: 'safe to enforce',
  not_safe: 'not safe to enforce',
  not_enough_data: 'not enough data to tell',
};
const MOST_PLACES = 3;

function number(title: string): HtmlColumn {
  return { title, isNumber: true };
}

export function agreementSection(zones: readonly ZoneReport[]): Markup {
  const compared = zones.flatMap(({ zone, agreement }) =>
    agreement === null ? [] : [{ zone, agreement }],
  );
  return markup`${htmlTable(
    'The verdict is the replay’s own, made before the logged outcome is looked at. Explained: the logged outcome is possible within the bounds.',
    [{ title: 'zone' }, number('compared'), number('same verdict'), number('explained')],
    compared.map(({ zone, agreement }) => [
      zone === '' ? '(no zone)' : shown(zone),
      count(agreement.compared),
      share(agreement.agree, agreement.compared),
      share(agreement.explained, agreement.compared),
    ]),
  )}
  ${htmlTable(
    'What keeps the others from agreeing',
    [{ title: 'zone' }, { title: 'class' }, number('requests'), { title: 'that is' }],
    compared.flatMap(({ zone, agreement }) =>
      agreement.classes.map((row) => [
        zone === '' ? '(no zone)' : shown(zone),
        shown(row.class),
        count(row.requests),
        row.meaning,
      ]),
    ),
  )}`;
}

/** Notes of the import, refusals that nobody is known to have given, outcomes that are not logged. */
export function unknownsSection({ findings, sources, zones }: Report): Markup {
  const unknown = sources
    .filter(({ source }) => source === '' || source === 'unknown')
    .reduce((sum, { requests }) => sum + requests, 0);
  const notLogged = zones.flatMap(({ zone, agreement }) =>
    (agreement?.classes ?? [])
      .filter((row) => row.class === 'not_logged')
      .map(({ requests }) => `${shown(zone)}: ${count(requests)} outcomes are not logged.`),
  );
  const texts = [
    ...findings.filter(({ code }) => code === 'not_derivable').map(({ message }) => shown(message)),
    ...(unknown === 0
      ? []
      : [
          `Who answered 429 or 503 is not in the log for ${count(unknown)} requests: log $limit_req_status, $limit_conn_status and $upstream_status.`,
        ]),
    ...notLogged,
    'Whether one key is many people behind one address: user agents are not stored.',
  ];
  return markup`<ul>
    ${texts.map((text) => markup`<li>${text}</li>`)}
  </ul>`;
}

export function linesSection({ lines, unparsable }: Report): Markup {
  return markup`${htmlTable(
    'Lines of the logs, by what they were',
    [{ title: 'log' }, { title: 'kind' }, { title: 'reason' }, number('lines')],
    lines.map((row) => [shown(row.source), shown(row.kind), shown(row.reason), count(row.lines)]),
  )}
  ${htmlTable(
    'Examples of lines that could not be read',
    [{ title: 'log' }, number('byte'), { title: 'reason' }, { title: 'found' }],
    unparsable.map((row) => [
      shown(row.source),
      count(row.offset),
      shown(row.reason),
      markup`<code>${shown(row.raw)}</code>`,
    ]),
  )}`;
}

/** What is wrong, or not as the configuration says; notes on logs are among the unknowns. */
export function findingsSection({ findings }: Report): Markup {
  const rows = findings.filter(({ code }) => code !== 'not_derivable');
  if (rows.length === 0) return markup`<p>Nothing stood out.</p>`;
  return htmlTable(
    'In force at some time of the report',
    [{ title: 'since' }, { title: 'finding' }, { title: 'what was found' }],
    rows.map((row) => [isoTime(row.sinceMs), shown(row.code), shown(row.message, 600)]),
  );
}

export function dryRunSection({ rules, differences }: DryRunShown): Markup {
  if (rules.length === 0) return markup`<p>No rule is under dry run.</p>`;
  return markup`${htmlTable(
    'Rules under dry run: what enforcing them would have done',
    [
      { title: 'zone' },
      { title: 'where' },
      ...['requests', 'would delay', 'would reject', 'share rejected'].map(number),
      { title: 'verdict' },
    ],
    rules.map((rule) => [
      shown(rule.zone),
      markup`${placesText(rule.places)}${rule.where === null ? NOTHING : markup` <span class="soft">${shown(rule.where)}</span>`}`,
      count(rule.requests),
      count(rule.wouldDelay),
      count(rule.wouldReject),
      `${(100 * rule.rejectedShare).toFixed(2)} %`,
      markup`<span class="verdict">${VERDICTS[rule.verdict] ?? rule.verdict}</span
          ><br />${rule.reasons.map((reason) => markup`${reason} `)}`,
    ]),
  )}
    <p>What a dry run cannot show:</p>
    <ul>
      ${differences.map((text) => markup`<li>${text}</li>`)}
    </ul>`;
}

function placesText(places: readonly { server: string; location: string }[]): string {
  const first = places
    .slice(0, MOST_PLACES)
    .map(({ server, location }) => shown(`${server || '(no name)'} ${location}`));
  const more = places.length - first.length;
  return first.join(', ') + (more > 0 ? ` and ${count(more)} more` : '');
}

export function examplesSection({ examples }: Report): Markup {
  return htmlTable(
    'The newest refused requests that were kept; paths without their arguments',
    [
      { title: 'time (UTC)' },
      number('status'),
      ...['source', 'server, location', 'request', 'zone', 'key'].map((title) => ({ title })),
      number('excess'),
    ],
    examples.map((row) => [
      new Date(row.timeMs).toISOString(),
      String(row.status),
      shown(row.source),
      shown(`${row.server || '(no name)'} ${row.location}`),
      markup`<code>${shown(`${row.requestMethod} ${row.path}`)}</code>`,
      row.zone === '' ? '-' : shown(row.zone),
      row.key === '' ? '-' : markup`<bdi class="key">${shown(row.key)}</bdi>`,
      row.zone === '' ? '-' : (row.excessMilli / 1000).toFixed(3),
    ]),
  );
}
