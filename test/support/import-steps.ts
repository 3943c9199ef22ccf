/**
 * A small import for crash tests: the same intents, blocks and checkpoints each time.
 */
import type { Block } from '../../src/store/store.js';
import { columnsOf } from '../../src/store/tables.js';
import type { Checkpoint, Intent } from '../../src/store/write-ahead.js';

export const CRASH_INSTANCE = 'crash';
export const STEPS = 2;
export const ROWS_PER_BLOCK = 4000;

export interface ImportStep {
  readonly intent: Intent;
  readonly blocks: readonly Block[];
  readonly checkpoint: Checkpoint;
}

export function importSteps(): ImportStep[] {
  return Array.from({ length: STEPS }, (_, index) => {
    const sequence = index + 1;
    const ranges = [{ sourceId: 'a', fromByte: index * 100, toByte: sequence * 100 }];
    const intent: Intent = { instance: CRASH_INSTANCE, sequence, ranges, startedBy: 'test' };
    const state = `state after ${sequence} `.repeat(20_000);
    const checkpoint = { instance: CRASH_INSTANCE, sequence, sources: [], state, logTimeMs: 0 };
    return { intent, blocks: blocksOf(sequence), checkpoint };
  });
}

function blocksOf(sequence: number): Block[] {
  const timeS = 1_700_000_000 + sequence * 60;
  const numbers = Array.from({ length: ROWS_PER_BLOCK }, (_, n) => n);
  return [
    {
      table: 'key_minutes',
      columns: ['instance', 'zone', 'key', 'minute', 'passed'],
      rows: numbers.map((n) => [CRASH_INSTANCE, 'rz', `key ${n}`, timeS, 1]),
    },
    {
      table: 'agreement',
      columns: columnsOf('agreement'),
      rows: numbers.map((n) => [CRASH_INSTANCE, 'rz', timeS, `class ${n % 7}`, 1]),
    },
  ];
}
