/**
 * Panel SQL to the SQL that the engine gets, as Grafana's ClickHouse data source 4.x expands it.
 *
 * Three steps, in its order: `$__conditionalAll` (Datasource.applyConditionalAll of the plugin),
 * variables (Grafana's template service, with the plugin's own format for variables without one),
 * macros (pkg/macros of the plugin, in its backend). A variable's value is text like any other when
 * macros are expanded, so that one with `$__` in it is not safe unless its format encodes it.
 *
 * Times are epoch milliseconds. Not here: ad hoc filters, `$__dateFilter` and other macros that no
 * panel uses; they are left as they stand, which the tests would notice.
 */

/** The value of a variable when All is chosen. */
export const ALL = '$__all';

/** One value; a list for a variable of several, even with one chosen; ALL. */
export type VariableValue = string | readonly string[];

export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
  /** Step that a chart of this range has at its width. */
  readonly intervalMs: number;
}

/**
 * Expands a panel's SQL.
 *
 * @param variables every variable that the SQL names
 * @throws Error for SQL that Grafana would refuse or misread: an unknown variable or format, All
 * where no `$__conditionalAll` takes it, a macro with too few or too many arguments
 */
export function expand(
  sql: string,
  range: TimeRange,
  variables: Readonly<Record<string, VariableValue>>,
): string {
  const conditional = expandConditionalAll(sql, variables);
  return expandMacros(expandVariables(conditional, variables), range);
}

const CONDITIONAL = '$__conditionalAll(';

/** From the last to the first, so that one inside another is done before it. */
function expandConditionalAll(
  sql: string,
  variables: Readonly<Record<string, VariableValue>>,
): string {
  let text = sql;
  for (
    let at = text.lastIndexOf(CONDITIONAL);
    at !== -1;
    at = text.lastIndexOf(CONDITIONAL, at - 1)
  ) {
    const { args, end } = argumentsAt(text, at + CONDITIONAL.length - 1);
    const [condition, variable] = args;
    if (args.length !== 2 || condition === undefined || variable === undefined) {
      throw new Error(`${CONDITIONAL}…) with ${args.length} arguments`);
    }
    const name = /^\s*\$(?:\{(\w+)\}|(\w+))\s*$/.exec(variable);
    if (name === null) throw new Error(`${CONDITIONAL}…) of ${variable}`);
    const value = valueOf(name[1] ?? name[2]!, variables).toString();
    const kept = value === '' || value === ALL ? '1=1' : condition;
    text = text.slice(0, at) + kept + text.slice(end);
    if (at === 0) break;
  }
  return text;
}

/** Arguments of the parenthesis that opens here, cut at its own commas; quotes are not looked at. */
function argumentsAt(text: string, open: number): { args: string[]; end: number } {
  const args: string[] = [];
  let depth = 0;
  let from = open + 1;
  for (let i = open; i < text.length; i++) {
    const c = text[i];
    if (c === '(') depth++;
    else if (c === ')') depth--;
    if ((c === ',' && depth === 1) || depth === 0) {
      args.push(text.slice(from, i));
      from = i + 1;
    }
    if (depth === 0) return { args, end: i + 1 };
  }
  throw new Error(`a parenthesis that does not end: ${text.slice(open, open + 40)}`);
}

function valueOf(name: string, variables: Readonly<Record<string, VariableValue>>): VariableValue {
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
  if (value === undefined) throw new Error(`no variable $${name}`);
  return value;
}

function expandVariables(sql: string, variables: Readonly<Record<string, VariableValue>>): string {
  // Macros are named like variables, but no variable of a user begins with two underscores.
  return sql.replace(
    /\$(?!__)(?:\{(\w+)(?::(\w+))?\}|(\w+))/g,
    (_, braced: string | undefined, format: string | undefined, bare: string | undefined) => {
      const name = braced ?? bare ?? '';
      const value = valueOf(name, variables);
      if (value.toString() === ALL) throw new Error(`All of $${name} outside $__conditionalAll`);
      return formatValue(value, format);
    },
  );
}

function formatValue(value: VariableValue, format: string | undefined): string {
  switch (format) {
    case undefined:
      return typeof value === 'string' ? value : `'${value.join("','")}'`;
    case 'percentencode':
      return percentEncode(typeof value === 'string' ? value : `{${value.join(',')}}`);
    case 'singlequote':
      // Backslashes stay as they are: Grafana's flaw, kept.
      return [value]
        .flat()
        .map((one) => `'${one.replaceAll("'", "\\'")}'`)
        .join(',');
    default:
      throw new Error(`no format of variables is called ${format}`);
  }
}

function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

type Macro = (args: readonly string[], range: TimeRange) => string;

const MACROS: Readonly<Record<string, { readonly takes: 0 | 1; readonly expand: Macro }>> = {
  fromTime: { takes: 0, expand: (_, { fromMs }) => dateTime(fromMs) },
  toTime: { takes: 0, expand: (_, { toMs }) => dateTime(toMs) },
  interval_s: { takes: 0, expand: (_, range) => `${intervalSeconds(range)}` },
  timeFilter: {
    takes: 1,
    expand: ([column], { fromMs, toMs }) =>
      `${column} >= ${dateTime(fromMs)} AND ${column} <= ${dateTime(toMs)}`,
  },
  timeFilter_ms: {
    takes: 1,
    expand: ([column], { fromMs, toMs }) =>
      `${column} >= fromUnixTimestamp64Milli(${fromMs})` +
      ` AND ${column} <= fromUnixTimestamp64Milli(${toMs})`,
  },
  timeInterval: {
    takes: 1,
    expand: ([column], range) =>
      `toStartOfInterval(toDateTime(${column}), INTERVAL ${intervalSeconds(range)} second)`,
  },
};

function dateTime(ms: number): string {
  return `toDateTime(${Math.floor(ms / 1000)})`;
}

function intervalSeconds({ intervalMs }: TimeRange): number {
  return Math.max(1, Math.floor(intervalMs / 1000));
}

function expandMacros(sql: string, range: TimeRange): string {
  return sql.replace(
    /\$__(\w+)\b(?:\(([^()]*)\))?/g,
    (whole, name: string, list: string | undefined) => {
      const macro = Object.hasOwn(MACROS, name) ? MACROS[name] : undefined;
      if (macro === undefined) return whole;
      const args = list === undefined || list.trim() === '' ? [] : list.split(',');
      if (args.length !== macro.takes) {
        throw new Error(`$__${name} with ${args.length} arguments, where it takes ${macro.takes}`);
      }
      return macro.expand(
        args.map((one) => one.trim()),
        range,
      );
    },
  );
}
