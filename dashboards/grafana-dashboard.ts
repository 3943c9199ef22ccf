/**
 * Dashboards of the catalogue as Grafana's JSON, through Grafana's own foundation SDK.
 *
 * The only file that knows the SDK. Panels keep the order of the catalogue and fill rows of 24
 * columns. Not here: what the panels ask (catalogue/), files (generate.ts).
 */
import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import * as common from '@grafana/grafana-foundation-sdk/common';
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as heatmap from '@grafana/grafana-foundation-sdk/heatmap';
import * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as statetimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import { ANNOTATIONS } from './catalogue/annotations.js';
import type { Annotation, Dashboard, DrillDown, Panel, Unit } from './catalogue/panel.js';
import {
  ALERTS_ANNOTATION,
  PROMETHEUS_DASHBOARD,
  PROMETHEUS_VARIABLES,
  type PrometheusPanel,
} from './catalogue/prometheus.js';
import { VARIABLES, type Variable } from './catalogue/variables.js';
import { ALL } from './expand.js';

/** Grafana's name of the ClickHouse data source. */
export const CLICKHOUSE = 'grafana-clickhouse-datasource';
/** By this tag the dashboards find each other. */
const TAG = 'limitlens';
const CLICKHOUSE_REF = { type: CLICKHOUSE, uid: '${datasource}' };
const PROMETHEUS_REF = { type: 'prometheus', uid: '${datasource}' };
/** Where the store's dashboards look for alerts, if anywhere. */
const ALERTS_REF = { type: 'prometheus', uid: '${prometheus}' };
const ALL_OPTION = { text: 'All', value: ALL };

const UNITS: Readonly<Record<Unit, string>> = {
  bytes: 'bytes',
  count: 'short',
  'lines per second': 'cps',
  milliseconds: 'ms',
  nodes: 'short',
  'nodes per second': 'cps',
  ratio: 'percentunit',
  requests: 'short',
  'requests per second': 'reqps',
  seconds: 's',
};

/** What the builders of all kinds of panel have in common, as far as it is used. */
interface AnyPanel extends Builder<dashboard.Panel> {
  id(id: number): this;
  title(title: string): this;
  description(description: string): this;
  datasource(ref: common.DataSourceRef): this;
  span(columns: number): this;
  height(rows: number): this;
  unit(unit: string): this;
  interval(interval: string): this;
  withTarget(target: Builder<Dataquery>): this;
  thresholds(thresholds: Builder<dashboard.ThresholdsConfig>): this;
  overrideByName(name: string, properties: dashboard.DynamicConfigValue[]): this;
}

/**
 * A dashboard over the store.
 *
 * @param runbooksUrl where the pages of alerts/runbooks can be read, without a slash at the end
 */
export function storeDashboard(source: Dashboard, runbooksUrl: string): dashboard.Dashboard {
  const builder = begin(source, runbooksUrl, CLICKHOUSE, 'ClickHouse');
  for (const variable of VARIABLES) {
    if (source.variables.includes(variable.name)) builder.withVariable(storeVariable(variable));
  }
  for (const annotation of ANNOTATIONS) builder.annotation(storeAnnotation(annotation));
  builder.withVariable(alertsVariable());
  builder.annotation(alertsAnnotation(ALERTS_REF, false));
  for (const [n, panel] of source.panels.entries()) {
    const query = clickhouseQuery(panel.sql, isOverTime(panel) ? 'timeseries' : 'table');
    builder.withPanel(
      drawn(panel, n + 1)
        .datasource(CLICKHOUSE_REF)
        .withTarget(query),
    );
  }
  return builder.build();
}

/** The dashboard over Prometheus metrics; see storeDashboard(). */
export function prometheusDashboard(runbooksUrl: string): dashboard.Dashboard {
  const builder = begin(PROMETHEUS_DASHBOARD, runbooksUrl, 'prometheus', 'Prometheus');
  for (const { name, label, query } of PROMETHEUS_VARIABLES) {
    builder.withVariable(queryVariable(name, label, query, true).datasource(PROMETHEUS_REF));
  }
  builder.annotation(alertsAnnotation(PROMETHEUS_REF, true));
  for (const [n, panel] of PROMETHEUS_DASHBOARD.panels.entries()) {
    builder.withPanel(prometheusPanel(panel, n + 1));
  }
  return builder.build();
}

function begin(
  source: Pick<Dashboard, 'id' | 'title' | 'question' | 'runbooks'>,
  runbooksUrl: string,
  datasourceType: string,
  datasourceLabel: string,
): dashboard.DashboardBuilder {
  const builder = new dashboard.DashboardBuilder(source.title)
    .uid(source.id)
    .description(source.question)
    .tags([TAG])
    .time({ from: 'now-6h', to: 'now' })
    .refresh('')
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .withVariable(
      new dashboard.DatasourceVariableBuilder('datasource')
        .label(datasourceLabel)
        .type(datasourceType),
    )
    .withVariable(runbooksVariable(runbooksUrl))
    .link(
      new dashboard.DashboardLinkBuilder('limitlens')
        .type(dashboard.DashboardLinkType.Dashboards)
        .tags([TAG])
        .includeVars(true)
        .keepTime(true),
    );
  for (const page of source.runbooks) {
    builder.link(
      new dashboard.DashboardLinkBuilder(`Runbook: ${page.replaceAll('-', ' ')}`)
        .type(dashboard.DashboardLinkType.Link)
        .icon('doc')
        .url(`\${runbooks}/${page}.md`)
        .targetBlank(true),
    );
  }
  return builder;
}

/** A hidden variable, so that the base of the links can be changed in one place. */
function runbooksVariable(url: string): Builder<dashboard.VariableModel> {
  const variable = new dashboard.ConstantVariableBuilder('runbooks').value(url).build();
  return { build: () => ({ ...variable, hide: dashboard.VariableHide.HideVariable }) };
}

function queryVariable(
  name: string,
  label: string,
  query: string,
  isMulti: boolean,
): dashboard.QueryVariableBuilder {
  const builder = new dashboard.QueryVariableBuilder(name)
    .label(label)
    .query(query)
    .definition(query)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .multi(isMulti)
    .includeAll(isMulti);
  return isMulti ? builder.current(ALL_OPTION) : builder;
}

function storeVariable({ name, label, sql, isMulti }: Variable): dashboard.QueryVariableBuilder {
  return queryVariable(name, label, sql, isMulti).datasource(CLICKHOUSE_REF);
}

function storeAnnotation({ title, colour, sql }: Annotation): dashboard.AnnotationQueryBuilder {
  return new dashboard.AnnotationQueryBuilder()
    .name(title)
    .enable(true)
    .iconColor(colour)
    .datasource(CLICKHOUSE_REF)
    .target(clickhouseQuery(sql, 'table'));
}

/** Hidden, since nothing but the marks of alerts comes from there. */
function alertsVariable(): Builder<dashboard.VariableModel> {
  const variable = new dashboard.DatasourceVariableBuilder('prometheus').type('prometheus').build();
  return { build: () => ({ ...variable, hide: dashboard.VariableHide.HideVariable }) };
}

/** @param isOn the dashboard has a Prometheus for sure; else the switch above the panels decides */
function alertsAnnotation(
  datasource: common.DataSourceRef,
  isOn: boolean,
): dashboard.AnnotationQueryBuilder {
  const { title, colour, expr } = ALERTS_ANNOTATION;
  const query = new prometheus.DataqueryBuilder().refId('Anno').datasource(datasource).expr(expr);
  return new dashboard.AnnotationQueryBuilder()
    .name(title)
    .enable(isOn)
    .iconColor(colour)
    .datasource(datasource)
    .titleFormat('{{alertname}}')
    .textFormat('{{instance}} {{zone}}')
    .tagKeys('alertname,severity')
    .target(query);
}

/** The data source's own query: it is no part of the SDK. */
function clickhouseQuery(rawSql: string, queryType: 'timeseries' | 'table'): Builder<Dataquery> {
  const query = {
    refId: 'A',
    datasource: CLICKHOUSE_REF,
    editorType: 'sql',
    queryType,
    rawSql,
    format: queryType === 'timeseries' ? 0 : 1,
    _implementsDataqueryVariant: () => undefined,
  };
  return { build: () => query };
}

function isOverTime({ kind }: Pick<Panel, 'kind'>): boolean {
  return kind === 'timeseries' || kind === 'state' || kind === 'heatmap';
}

type Drawable = Omit<Panel, 'sql'>;

/** A panel with everything but its data. */
function drawn(panel: Drawable, id: number): AnyPanel {
  const builder = ofKind(panel)
    .id(id)
    .title(panel.title)
    .description(describe(panel))
    .span(panel.width)
    .height(panel.kind === 'stat' ? 4 : panel.width === 24 ? 10 : 9)
    .unit(UNITS[panel.unit]);
  if (panel.minIntervalSeconds !== undefined) builder.interval(`${panel.minIntervalSeconds}s`);
  for (const [column, unit] of Object.entries(panel.units ?? {})) {
    builder.overrideByName(column, [{ id: 'unit', value: UNITS[unit] }]);
  }
  for (const column of panel.hidden ?? []) {
    builder.overrideByName(column, [{ id: 'custom.hidden', value: true }]);
  }
  for (const drill of panel.drillDown ?? []) {
    builder.overrideByName(drill.column, [{ id: 'links', value: [drillDownLink(drill)] }]);
  }
  return builder.thresholds(thresholds(panel));
}

function describe({ question, why, thresholds = [] }: Drawable): string {
  const lines = thresholds.map((one) => `- from ${one.value}, ${one.colour}: ${one.why}`);
  return [question, why, lines.join('\n')].filter((part) => part !== '').join('\n\n');
}

function thresholds({ thresholds = [] }: Drawable): dashboard.ThresholdsConfigBuilder {
  const steps = thresholds.map(({ value, colour }) => ({ value, color: colour }));
  return new dashboard.ThresholdsConfigBuilder()
    .mode(dashboard.ThresholdsMode.Absolute)
    .steps([{ value: null, color: 'green' }, ...steps]);
}

function drillDownLink({ to, variables }: DrillDown): { title: string; url: string } {
  const query = Object.entries(variables).map(
    ([name, column]) => `var-${name}=\${__data.fields.${column}:percentencode}`,
  );
  const url = `/d/${to}?\${__url_time_range}&\${instance:queryparam}&${query.join('&')}`;
  return { title: 'Show its keys', url };
}

function ofKind(panel: Drawable): AnyPanel {
  switch (panel.kind) {
    case 'timeseries':
      return timeSeries(panel);
    case 'stat':
      return new stat.PanelBuilder()
        .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false))
        .graphMode(common.BigValueGraphMode.None)
        .textMode(common.BigValueTextMode.ValueAndName);
    case 'table':
      return new table.PanelBuilder().filterable(true);
    case 'bar':
      return new barchart.PanelBuilder()
        .orientation(common.VizOrientation.Horizontal)
        .stacking(common.StackingMode.Normal)
        .legend(legend());
    case 'heatmap':
      return new heatmap.PanelBuilder().calculate(false);
    case 'state':
      return new statetimeline.PanelBuilder()
        .mergeValues(true)
        .showValue(common.VisibilityMode.Never)
        .displayName('${__field.labels.series}')
        .mappings([stateMapping(panel)])
        .legend(legend());
  }
}

function timeSeries(panel: Drawable): timeseries.PanelBuilder {
  const builder = new timeseries.PanelBuilder()
    .legend(legend())
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi))
    .min(0);
  if ((panel.thresholds ?? []).length > 0) {
    builder.thresholdsStyle(
      new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed),
    );
  }
  if (panel.isNamedBySeries) builder.displayName('${__field.labels.series}');
  for (const column of panel.band ?? []) {
    // Grafana fills down to one series by its whole name, which ends in instance and zone here.
    builder.overrideByRegexp(`/^${column}/`, [
      { id: 'custom.lineWidth', value: 1 },
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [2, 4] } },
    ]);
  }
  if (panel.draw === 'lines') {
    return builder.drawStyle(common.GraphDrawStyle.Line).spanNulls(true);
  }
  return builder
    .drawStyle(common.GraphDrawStyle.Bars)
    .fillOpacity(70)
    .lineWidth(0)
    .stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal).group('A'));
}

function legend(): common.VizLegendOptionsBuilder {
  return new common.VizLegendOptionsBuilder()
    .showLegend(true)
    .displayMode(common.LegendDisplayMode.List)
    .placement(common.LegendPlacement.Bottom);
}

function stateMapping({ states = [] }: Drawable): dashboard.ValueMap {
  const options = states.map(
    ({ value, text, colour }, index) => [`${value}`, { text, color: colour, index }] as const,
  );
  return { type: dashboard.MappingType.ValueToText, options: Object.fromEntries(options) };
}

function prometheusPanel(panel: PrometheusPanel, id: number): AnyPanel {
  const builder = drawn(panel, id).datasource(PROMETHEUS_REF);
  for (const [n, { expr, legend }] of panel.queries.entries()) {
    const query = new prometheus.DataqueryBuilder()
      .refId(String.fromCharCode('A'.charCodeAt(0) + n))
      .datasource(PROMETHEUS_REF)
      .expr(expr)
      .legendFormat(legend);
    builder.withTarget(panel.kind === 'stat' ? query.instant() : query.range());
  }
  return builder;
}
