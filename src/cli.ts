#!/usr/bin/env node
/** The program `limitlens`; see cli/program.ts. */
import { main } from './cli/program.js';

await main();
