/**
 * Writes samples/limitlens.schema.json, which editors complete limitlens.yaml with: `npm run schema`.
 */
import { writeFileSync } from 'node:fs';
import { configSchema } from './config-schema.js';

writeFileSync('samples/limitlens.schema.json', `${JSON.stringify(configSchema(), null, 2)}\n`);
