/**
 * A panel's SQL as one statement with bound parameters.
 *
 * The catalogue writes values of variables as `'${name:percentencode}'`, for Grafana, which can only
 * put text into text. Here each becomes a parameter `{name:String}` with the same encoding in it, so
 * that no value is ever part of a statement. Times and steps are numbers of our own.
 *
 * Not here: which values (choice.ts), running it (panel-rows.ts).
 */
import { ALL, expand, type TimeRange } from '../../dashboards/expand.js';
import { variableValue } from '../../dashboards/catalogue/variables.js';

/** Variable to its values: none for All. A value is as the catalogue's variables have it. */
export type Choice = Readonly<Record<string, readonly string[]>>;

export interface Statement {
  readonly sql: string;
  readonly params: Readonly<Record<string, string>>;
}

const QUOTED_VARIABLE = /'\$\{(\w+):percentencode\}'/g;

/**
 * @param choice of every variable that the SQL names
 * @throws Error for SQL that has a variable or macro in another form
 */
export function bind(sql: string, range: TimeRange, choice: Choice): Statement {
  const names = new Set<string>();
  const withParameters = sql.replace(QUOTED_VARIABLE, (_, name: string) => {
    names.add(name);
    return `{${name}:String}`;
  });
  // Only whether All is chosen matters to what is left.
  const chosen = Object.entries(choice).map(
    ([name, values]) => [name, values.length === 0 ? ALL : 'chosen'] as const,
  );
  const expanded = expand(withParameters, range, Object.fromEntries(chosen));
  if (expanded.includes('$')) throw new Error(`not expanded to its end: ${expanded}`);
  const params = [...names].map((name) => [name, textOf(choice[name] ?? [])] as const);
  return { sql: expanded, params: Object.fromEntries(params) };
}

/** One or several values as Grafana hands them over. */
function textOf(values: readonly string[]): string {
  return variableValue(values.length > 1 ? `{${values.join(',')}}` : (values[0] ?? ''));
}
