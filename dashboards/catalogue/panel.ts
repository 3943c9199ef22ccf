/**
 * What a panel and a dashboard are, apart from whatever draws them: Grafana or the built-in page.
 *
 * A panel's SQL is written with Grafana's macros and variables (expand.ts turns it into what the
 * engine gets). What its kind asks of the result:
 *
 * - `timeseries`, `state`, `heatmap`: the first column is the one time, ascending; a string column
 *   `series`, where there is one, tells lines apart; all others are numbers
 * - `stat`: one row of numbers
 * - `bar`: a string, then numbers
 * - `table`: anything
 *
 * Not here: SQL (the files of the dashboards), how Grafana is told (../grafana-dashboard.ts).
 */
export type PanelKind = 'timeseries' | 'stat' | 'table' | 'bar' | 'heatmap' | 'state';

export type Unit =
  | 'bytes'
  | 'count'
  | 'lines per second'
  | 'milliseconds'
  | 'nodes'
  | 'nodes per second'
  | 'ratio'
  | 'requests'
  | 'requests per second'
  | 'seconds';

export type Colour = 'green' | 'yellow' | 'orange' | 'red';

/** From this value on, the panel's colour; below the first it is green. */
export interface Threshold {
  readonly value: number;
  readonly colour: Colour;
  readonly why: string;
}

/** What a number stands for in a panel of kind `state`. */
export interface State {
  readonly value: number;
  readonly text: string;
  readonly colour: Colour;
}

/** Where a click on a cell of a column leads: another dashboard, with variables set from the row. */
export interface DrillDown {
  readonly column: string;
  /** Id of a dashboard. */
  readonly to: string;
  /** Variable to the column whose value it takes. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface Panel {
  /** Unique in the catalogue. */
  readonly id: string;
  readonly title: string;
  /** What somebody wants to know who looks here. */
  readonly question: string;
  /** Why the answer is what it is, and what to mind in reading it. */
  readonly why: string;
  readonly kind: PanelKind;
  readonly sql: string;
  /** Of every number that `units` does not name. */
  readonly unit: Unit;
  readonly units?: Readonly<Record<string, Unit>>;
  readonly thresholds?: readonly Threshold[];
  readonly states?: readonly State[];
  /** It has one number, and its lines are named after `series` alone. */
  readonly isNamedBySeries?: true;
  /** Counts are bars that add up; what is measured is a line. */
  readonly draw?: 'stacked bars' | 'lines';
  /** Columns between which a measured value lies: thin lines, with the space between them filled. */
  readonly band?: readonly [low: string, high: string];
  /** Columns that are there for links only. */
  readonly hidden?: readonly string[];
  readonly drillDown?: readonly DrillDown[];
  /** Step of the rows below which a finer interval would tear holes. */
  readonly minIntervalSeconds?: number;
  /** In 24ths of the page. */
  readonly width: 6 | 8 | 12 | 16 | 24;
}

/** Marks on the time line of every panel. Columns: time, timeEnd where it lasts, text, tags. */
export interface Annotation {
  readonly id: string;
  readonly title: string;
  readonly colour: Colour;
  readonly sql: string;
}

export interface Dashboard {
  readonly id: string;
  readonly title: string;
  readonly question: string;
  /** Names of the variables of variables.ts that its panels use. */
  readonly variables: readonly string[];
  /** Pages of alerts/runbooks that belong here. */
  readonly runbooks: readonly string[];
  readonly panels: readonly Panel[];
}
