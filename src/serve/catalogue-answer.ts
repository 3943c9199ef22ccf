/**
 * The catalogue as the page gets it: without SQL, with names that stand well in a path.
 */
import { DASHBOARDS } from '../../dashboards/catalogue/dashboards.js';
import type { Panel } from '../../dashboards/catalogue/panel.js';
import { VARIABLES } from '../../dashboards/catalogue/variables.js';
import type { CatalogueAnswer, PanelInfo } from '../../dashboards/page/wire.js';

/** `limitlens-dry-run` is the page `dry-run`. */
export function pageName(dashboardId: string): string {
  return dashboardId.replace(/^limitlens-/, '');
}

export function catalogueAnswer(version: string): CatalogueAnswer {
  return {
    version,
    dashboards: DASHBOARDS.map(({ id, title, question, variables, panels }) => ({
      ...{ name: pageName(id), id, title: title.replace(/^limitlens: /, '') },
      ...{ question, variables, panels: panels.map(withoutSql) },
    })),
    variables: VARIABLES.map(({ name, label, isMulti }) => ({ name, label, isMulti })),
  };
}

function withoutSql(panel: Panel): PanelInfo {
  // What is undefined is left out of JSON.
  const info: PanelInfo & { sql: undefined } = { ...panel, sql: undefined };
  return info;
}
