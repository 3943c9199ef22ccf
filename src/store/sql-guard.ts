/**
 * Which statements a stranger may run on the store: those that read its tables, with functions that
 * compute.
 *
 * The engine's readonly=1 refuses writes, changes of settings and most table functions, but not
 * SELECT … INTO OUTFILE, the function file(), KILL QUERY or other databases; this does. It judges
 * the text that ClickHouse's own formatter made of a statement (one statement, no comments), and
 * that very text is run, so that no other reading of it matters. What is not known is refused.
 *
 * Not here: the formatter and the engine's limits (guarded-queries.ts), which functions there are
 * (sql-functions.ts).
 */
import { sqlTokens, type SqlToken } from './sql-tokens.js';
import type { FunctionRights } from './sql-functions.js';

/** What tools ask to know which tables and columns there are. */
const SYSTEM_TABLES = new Set([
  'one',
  'numbers',
  'databases',
  'tables',
  'columns',
  'functions',
  'data_type_families',
  'time_zones',
]);

const TABLE_FUNCTIONS = new Set(['numbers', 'generateseries', 'generate_series', 'values', 'view']);

/** Words that a parenthesis may follow, and that are no function. */
const KEYWORDS = new Set(
  (
    'ALL AND ANY ARRAY AS ASC BETWEEN BY CASE COLUMNS CUBE DESC DISTINCT ELSE EXCEPT EXISTS FILL FILTER ' +
    'FROM GROUPING HAVING ILIKE IN INNER INTERPOLATE INTERSECT IS JOIN LATERAL LIKE LIMIT MATERIALIZED ' +
    'NOT OFFSET ON OR OVER PARTITION PREWHERE QUALIFY REGEXP REPLACE ROLLUP SELECT SETS STRICT TABLE ' +
    'THEN TO UNION USING VALUES WHEN WHERE WINDOW WITH'
  ).split(' '),
);

/** Into files; functions by name alone; limits lifted for a part of a statement. */
const NEVER = new Set(['INTO', 'APPLY', 'SETTINGS']);

const SHOW_FORMS = [['DATABASES'], ['TABLES'], ['COLUMNS'], ['CREATE', 'TABLE']] as const;
const EXPLAIN_KINDS = new Set(['AST', 'SYNTAX', 'QUERY', 'TREE', 'PLAN', 'PIPELINE', 'ESTIMATE']);

export interface GuardedPlace {
  /** The database of the store. */
  readonly database: string;
  /** All databases of the engine. */
  readonly databases: readonly string[];
  readonly functions: FunctionRights;
}

/**
 * @param sql as formatQuery() wrote it
 * @returns why it may not run, or undefined when it may
 */
export function refusalOf(sql: string, place: GuardedPlace): string | undefined {
  const tokens = sqlTokens(sql);
  if (tokens === undefined) return 'it holds signs that are not known here';
  return statementRefusal(tokens, place) ?? tokensRefusal(tokens, place);
}

function statementRefusal(tokens: readonly SqlToken[], place: GuardedPlace): string | undefined {
  const words = tokens.map((token) => (token.kind === 'word' ? token.text.toUpperCase() : ''));
  const refused = 'only SELECT, WITH, SHOW, DESCRIBE, EXISTS and EXPLAIN of these may be run';
  const first = tokens[0]?.text === '(' ? 'SELECT' : words[0];
  switch (first) {
    case 'SELECT':
    case 'WITH':
      return undefined;
    case 'DESCRIBE':
    case 'EXISTS':
      return words[1] === 'TABLE' ? undefined : refused;
    case 'SHOW': {
      const isKnown = SHOW_FORMS.some((form) => form.every((word, i) => words[1 + i] === word));
      if (!isKnown) return `${refused}, and of SHOW only DATABASES, TABLES, COLUMNS, CREATE TABLE`;
      const other = tokens.find(
        ({ kind, text }) => kind !== 'string' && isOtherDatabase(text, place),
      );
      return other === undefined ? undefined : `the database ${other.text} is not the store's`;
    }
    case 'EXPLAIN':
      return isExplained(tokens, words) ? undefined : refused;
    default:
      return refused;
  }
}

/** `EXPLAIN [kind] [setting = value, …] SELECT …` */
function isExplained(tokens: readonly SqlToken[], words: readonly string[]): boolean {
  let at = 1;
  while (EXPLAIN_KINDS.has(words[at] ?? '')) at++;
  while (tokens[at + 1]?.text === '=' && words[at] !== '') {
    at += 3;
    if (tokens[at]?.text === ',') at++;
  }
  return words[at] === 'SELECT' || words[at] === 'WITH' || tokens[at]?.text === '(';
}

function tokensRefusal(tokens: readonly SqlToken[], place: GuardedPlace): string | undefined {
  for (const [i, token] of tokens.entries()) {
    if (token.kind === 'parameter' && /\bIdentifier\b/i.test(token.text)) {
      return 'names may not come as parameters';
    }
    if (token.text === ';' && token.kind === 'sign') return 'one statement at a time';
    if (token.kind !== 'word' && token.kind !== 'quoted') continue;
    const refusal = nameRefusal(tokens, i, place);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function nameRefusal(
  tokens: readonly SqlToken[],
  at: number,
  place: GuardedPlace,
): string | undefined {
  const { kind, text } = tokens[at]!;
  const next = tokens[at + 1];
  const isPart = tokens[at - 1]?.text === '.' && tokens[at - 1]?.kind === 'sign';
  const upper = text.toUpperCase();
  if (kind === 'word' && NEVER.has(upper)) return `${upper} is not allowed`;
  if (next?.kind === 'sign' && next.text === '(') {
    if (kind === 'word' && text === upper && KEYWORDS.has(text)) return undefined;
    const isAllowed = place.functions.isAllowed(text) || TABLE_FUNCTIONS.has(text.toLowerCase());
    return isAllowed ? undefined : `the function ${text} is not allowed`;
  }
  if (isPart) return undefined;
  if (next?.kind === 'sign' && next.text === '.' && isOtherDatabase(text, place)) {
    const table = tokens[at + 2]?.text ?? '';
    if (text === 'system' && SYSTEM_TABLES.has(table)) return undefined;
    return `the table ${text}.${table} is not the store's`;
  }
  // Functions of arrays take others by name alone.
  return place.functions.isForbidden(text) ? `the function ${text} is not allowed` : undefined;
}

function isOtherDatabase(name: string, place: GuardedPlace): boolean {
  return name !== place.database && place.databases.includes(name);
}
