/**
 * The dashboards as Grafana gets them: up to date, whole, and naming only what there is.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ANNOTATIONS } from '../dashboards/catalogue/annotations.js';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import {
  ALERTS_ANNOTATION,
  FIRING_ALERTS,
  PROMETHEUS_DASHBOARD,
  PROMETHEUS_VARIABLES,
} from '../dashboards/catalogue/prometheus.js';
import { VARIABLES } from '../dashboards/catalogue/variables.js';
import { grafanaFiles, RUNBOOKS } from '../dashboards/grafana-files.js';
import { METRICS, type Metric } from '../dashboards/metric-names.js';
import { OUTCOME_WORDS } from '../src/aggregate/outcome-words.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

const FOLDER = 'dashboards/grafana';

interface Target {
  readonly rawSql?: string;
  readonly expr?: string;
  readonly format?: number;
  readonly queryType?: string;
  readonly datasource: { readonly type: string; readonly uid: string };
}

interface GrafanaPanel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly interval?: string;
  readonly targets: readonly Target[];
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig: { readonly overrides: readonly unknown[] };
}

interface GrafanaDashboard {
  readonly uid: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly panels: readonly GrafanaPanel[];
  readonly links: readonly { readonly type: string; readonly url?: string }[];
  readonly annotations: {
    readonly list?: readonly { readonly target: Target; readonly enable: boolean }[];
  };
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string;
      readonly multi: boolean;
      readonly includeAll: boolean;
      readonly hide?: number;
    }[];
  };
}

const FILES = grafanaFiles();
const PARSED = [...FILES.values()].map((text) => JSON.parse(text) as GrafanaDashboard);

test('the dashboards that are checked in are those of the catalogue', () => {
  assert.deepEqual(readdirSync(FOLDER).toSorted(), [...FILES.keys()].toSorted());
  for (const [name, text] of FILES) {
    assert.equal(readFileSync(`${FOLDER}/${name}`, 'utf8'), text, `${name}: generate it again`);
  }
});

test('every panel of the catalogue is in its dashboard, in order, with its statement', () => {
  for (const source of DASHBOARDS) {
    const found = PARSED.find(({ uid }) => uid === source.id);
    assert.ok(found !== undefined, source.id);
    assert.deepEqual(
      found.panels.map(({ title, targets }) => [title, targets[0]?.rawSql]),
      source.panels.map(({ title, sql }) => [title, sql]),
    );
    for (const [n, { kind, minIntervalSeconds }] of source.panels.entries()) {
      const isOverTime = kind === 'timeseries' || kind === 'state' || kind === 'heatmap';
      const drawn: GrafanaPanel = found.panels[n]!;
      assert.equal(drawn.targets[0]!.format, isOverTime ? 0 : 1);
      assert.equal(drawn.targets[0]!.queryType, isOverTime ? 'timeseries' : 'table');
      // Without it, Grafana asks for steps shorter than the rows are.
      assert.equal(drawn.interval, isOverTime ? `${minIntervalSeconds}s` : undefined);
    }
    assert.deepEqual(
      found.annotations.list?.map(({ target }) => target.rawSql ?? target.expr),
      [...ANNOTATIONS.map(({ sql }) => sql), ALERTS_ANNOTATION.expr],
    );
  }
});

test('ids are unique, and panels lie beside each other', () => {
  const ids = [...DASHBOARDS, PROMETHEUS_DASHBOARD].flatMap(({ panels }) =>
    panels.map((p) => p.id),
  );
  assert.equal(new Set(ids).size, ids.length);
  for (const { uid, panels } of PARSED) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, uid);
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          const cell = `${x} ${y}`;
          assert.ok(!taken.has(cell), `${uid}: ${title} covers another panel`);
          taken.add(cell);
        }
      }
    }
  }
});

test('every data source is the variable, and every variable that is named is there', () => {
  for (const { uid, panels, annotations, templating } of PARSED) {
    const names = templating.list.map(({ name }) => name);
    const [first] = templating.list;
    const isHidden = ({ name }: { name: string }) => ['prometheus', 'runbooks'].includes(name);
    for (const one of templating.list) assert.equal(one.hide === 2, isHidden(one), one.name);
    assert.deepEqual([first?.name, first?.type], ['datasource', 'datasource']);
    const targets = [
      ...panels.flatMap((panel) => panel.targets),
      ...(annotations.list ?? []).map(({ target }) => target),
    ];
    const texts = templating.list.map(({ query }) => query);
    for (const target of targets) {
      const isAlerts = target.expr === ALERTS_ANNOTATION.expr && first?.query !== 'prometheus';
      const wanted = isAlerts
        ? { type: 'prometheus', uid: '${prometheus}' }
        : { type: first?.query, uid: '${datasource}' };
      assert.deepEqual(target.datasource, wanted);
      texts.push(target.rawSql ?? target.expr ?? '');
    }
    for (const text of texts) {
      for (const [, name = ''] of text.matchAll(/\$\{?(?!__)(\w+)/g)) {
        assert.ok(names.includes(name), `${uid}: $${name} is not among ${names.join()}`);
      }
    }
  }
});

test('variables of lists have All; a chosen key is one', () => {
  for (const { templating } of PARSED) {
    for (const { name, type, multi, includeAll } of templating.list) {
      if (type !== 'query') continue;
      assert.deepEqual([multi, includeAll], name === 'key' ? [false, false] : [true, true], name);
    }
  }
});

test('every variable of a dashboard is known, and used by one of its panels', () => {
  for (const { id, variables, panels } of DASHBOARDS) {
    for (const name of variables) {
      assert.ok(
        VARIABLES.some((variable) => variable.name === name),
        `${id}: ${name}`,
      );
      assert.ok(
        panels.some(({ sql }) => sql.includes(`\${${name}:percentencode}`)),
        `${id}: no panel uses ${name}`,
      );
    }
  }
});

test('dashboards lead to each other and to runbooks, drill-downs to dashboards', () => {
  const uids = PARSED.map(({ uid }) => uid);
  for (const { uid, tags, links, panels } of PARSED) {
    assert.deepEqual(tags, ['limitlens']);
    assert.equal(links.filter(({ type }) => type === 'dashboards').length, 1, uid);
    const pages = links.filter(({ type }) => type === 'link');
    assert.ok(pages.length > 0, uid);
    for (const { url } of pages) {
      assert.match(url ?? '', /^\$\{runbooks\}\/[a-z0-9-]+\.md$/);
      const path = url!.replace('${runbooks}', RUNBOOKS);
      assert.ok(existsSync(path), `${uid}: ${path} is not there`);
    }
    for (const [, to = ''] of JSON.stringify(panels).matchAll(/"url":"\/d\/([^?"]*)/g)) {
      assert.ok(uids.includes(to), `${uid} leads to ${to}`);
    }
  }
});

test('the base of the runbooks can be given', () => {
  for (const text of grafanaFiles('https://wiki.example/limits').values()) {
    const { templating } = JSON.parse(text) as GrafanaDashboard;
    const base = templating.list.find(({ name }) => name === 'runbooks');
    assert.equal(base?.query, 'https://wiki.example/limits');
  }
});

test('PromQL names metrics and labels that are exported, and outcomes that there are', () => {
  const metrics = new Map<string, Metric>(Object.values(METRICS).map((m) => [m.name, m]));
  const expressions = [
    ...PROMETHEUS_DASHBOARD.panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
    ...PROMETHEUS_VARIABLES.map(({ query }) => query),
  ];
  const seen = new Set<string>();
  for (const expr of expressions) {
    for (const [, name = '', selector = ''] of expr.matchAll(/(limitlens_\w+)(?:\{([^}]*)\})?/g)) {
      const metric = metrics.get(name) ?? metrics.get(name.replace(/_bucket$/, ''));
      assert.ok(metric !== undefined, `${expr}: no metric ${name}`);
      seen.add(metric.name);
      const labels = [...selector.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label);
      for (const label of labels) assert.ok(metric.labels.includes(label), `${name}{${label}}`);
    }
    for (const [, words = ''] of expr.matchAll(/outcome[!=]~"([^"]*)"/g)) {
      for (const word of words.split('|')) {
        assert.ok((OUTCOME_WORDS as readonly string[]).includes(word), word);
      }
    }
    assert.equal(expr.split('(').length, expr.split(')').length, expr);
  }
  // Of use in a query now and then, but nothing to watch.
  const notShown = [
    'limitlens_source_lag_bytes',
    'limitlens_syslog_messages_total',
    'limitlens_store_rows_total',
    'limitlens_alert_evaluations_total',
    'limitlens_notifications_merged_total',
    'limitlens_notification_last_success_timestamp_seconds',
    'limitlens_config_reloads_total',
    'limitlens_config_last_reload_success_timestamp_seconds',
    'limitlens_build_info',
  ];
  const forgotten = [...metrics.keys()].filter((name) => !seen.has(name));
  assert.deepEqual(forgotten.toSorted(), notShown.toSorted(), 'shown nowhere');
});

test('promtool can read every expression, as Grafana expands it', (t) => {
  const expressions = [
    ALERTS_ANNOTATION.expr,
    ...PROMETHEUS_DASHBOARD.panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
  ];
  const expanded = expressions.map((expr) =>
    expr
      .replaceAll('$__rate_interval', '1m')
      .replaceAll('$__range', '6h')
      .replace(/\$(?:instance|zone)\b/g, '(edge|core)'),
  );
  assert.doesNotMatch(expanded.join(), /\$/);
  const rules = expanded.map((expr, n) => ({ record: `dashboard:${n}`, expr }));
  const file = join(makeTempDir(t), 'rules.json');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  const check = spawnSync(requireProgram('promtool'), ['check', 'rules', file], {
    encoding: 'utf8',
  });
  assert.equal(check.status, 0, check.stderr);
  assert.match(check.stdout, new RegExp(`SUCCESS: ${rules.length} rules`));
});

test('alerts that are marked on the time line are those that there are rules for', () => {
  const rules = readFileSync('alerts/prometheus.rules.yml', 'utf8');
  const names = Array.from(rules.matchAll(/^ +- alert: (\w+)$/gm), ([, name]) => name);
  assert.deepEqual(names.toSorted(), [...FIRING_ALERTS].toSorted());
  const on = PARSED.map(({ uid, annotations }) => {
    const alerts = annotations.list?.find(({ target }) => target.expr === ALERTS_ANNOTATION.expr);
    return [uid, alerts?.enable];
  });
  // Grafana asks for every annotation that is on, and not everybody has Prometheus.
  for (const [uid, isOn] of on) assert.equal(isOn, uid === PROMETHEUS_DASHBOARD.id, String(uid));
});

test('metrics are named as Prometheus has it', () => {
  for (const { name, type, labels, help } of Object.values(METRICS) as readonly Metric[]) {
    assert.match(name, /^limitlens_[a-z][a-z_]*[a-z]$/);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.match(help, /^[A-Z0-9].*\.$/);
    for (const label of labels) assert.doesNotMatch(label, /client|key|addr|path/);
  }
});
