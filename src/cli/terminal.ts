/**
 * Where commands write to.
 */
import { Output } from '../commands/output.js';

export const output = new Output(process.stdout, process.stderr);
