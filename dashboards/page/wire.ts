/**
 * What the page's API answers: the words that server and page have in common. Types alone.
 *
 * Times are epoch milliseconds; a value of a variable is as the catalogue means it
 * (../catalogue/conditions.ts): percent-encoded, a plain name as it is.
 */
import type { Panel } from '../catalogue/panel.js';

/** A panel without its SQL. */
export type PanelInfo = Omit<Panel, 'sql'>;

export interface DashboardInfo {
  /** Last part of the page's path. */
  readonly name: string;
  /** Id in the catalogue, as drill-downs name it. */
  readonly id: string;
  readonly title: string;
  readonly question: string;
  readonly variables: readonly string[];
  readonly panels: readonly PanelInfo[];
}

export interface VariableInfo {
  readonly name: string;
  readonly label: string;
  readonly isMulti: boolean;
}

export interface CatalogueAnswer {
  /** Of limitlens. */
  readonly version: string;
  readonly dashboards: readonly DashboardInfo[];
  readonly variables: readonly VariableInfo[];
}

/** Which time the store knows of; null when it is empty. */
export interface SpanAnswer {
  readonly span: { readonly fromMs: number; readonly toMs: number } | null;
  readonly nowMs: number;
}

export type Cell = string | number | null;

export interface Column {
  readonly name: string;
  /** Numbers and times are numbers in rows. */
  readonly type: 'number' | 'time' | 'text';
}

export interface PanelAnswer {
  readonly id: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  /** There are more rows than are given. */
  readonly isCut: boolean;
}

export interface VariableOption {
  readonly value: string;
  readonly text: string;
}

/** Variable to what can be chosen for it in this time. */
export interface VariablesAnswer {
  readonly options: Readonly<Record<string, readonly VariableOption[]>>;
}

export interface Mark {
  readonly id: string;
  readonly title: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly text: string;
  readonly tags: string;
}

export interface AnnotationsAnswer {
  readonly marks: readonly Mark[];
}

/** A limited request that is kept as an example. */
export interface ExampleInfo {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly status: number;
  readonly source: string;
  readonly timeMs: number;
  readonly method: string;
  readonly path: string;
  readonly zone: string;
  readonly key: string;
  readonly excessMilli: number;
}

export interface ExampleAnswer {
  readonly example: ExampleInfo;
  /** Plain text of several lines. */
  readonly explanation: string;
}
