/**
 * Writes dashboards/grafana/*.json from the catalogue: `node dist/dashboards/generate.js [URL]`,
 * from the root of the repository. The URL is where the pages of alerts/runbooks can be read.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { grafanaFiles } from './grafana-files.js';

const [url] = process.argv.slice(2);
for (const [name, text] of grafanaFiles(url?.replace(/\/+$/, ''))) {
  writeFileSync(join('dashboards', 'grafana', name), text);
}
