/**
 * Writes alerts/prometheus.*.yml: `node dist/alerts/generate.js [URL]`, from the root of the
 * repository. The URL is where the pages of alerts/runbooks can be read.
 */
import { writeFileSync } from 'node:fs';
import { prometheusRules } from './prometheus-rules.js';
import { prometheusTests } from './prometheus-tests.js';

const url = process.argv[2]?.replace(/\/+$/, '');
writeFileSync('alerts/prometheus.rules.yml', prometheusRules(url));
writeFileSync('alerts/prometheus.tests.yml', prometheusTests(url));
