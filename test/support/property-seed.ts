/**
 * Preloaded by `npm test`: property tests draw from one seed, so that a run can be had again.
 *
 * `LIMITLENS_SEED=N` takes another one, `LIMITLENS_SEED=random` a new one for each property, which
 * its failure then names.
 */
import fc from 'fast-check';

const DEFAULT_SEED = 20_261_130;

const wanted = process.env['LIMITLENS_SEED'] ?? String(DEFAULT_SEED);
if (wanted !== 'random') {
  const seed = Number(wanted);
  if (!Number.isInteger(seed)) throw new Error(`LIMITLENS_SEED=${wanted}: expected an integer`);
  fc.configureGlobal({ seed });
}
