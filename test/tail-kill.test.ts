/**
 * kill -9 at random instants, with logs that grow and rotate meanwhile: what is stored in the end is
 * what one import stores.
 */
import { test } from 'node:test';
import { runKillRounds } from './support/kill-rounds.js';
import { makeTempDir } from './support/temp-dir.js';

test('killed six times under load, the store holds what one import of the logs holds', async (t) => {
  await runKillRounds({ rounds: 6, seed: 20, folder: makeTempDir(t) });
});
