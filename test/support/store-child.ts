/**
 * A process of its own around a store: `store-child.js hold PATH` or `store-child.js import PATH N`.
 *
 * `hold` opens the store, says `open` and keeps it until it is killed. `import` does the steps of
 * importSteps() from where the store is, and kills itself in the middle of its N-th request to the
 * store (0: never, and says `done`).
 */
import { setImmediate as turn } from 'node:timers/promises';
import { openStore, type Store } from '../../src/store/store.js';
import { blockToken } from '../../src/store/write-ahead.js';
import { CRASH_INSTANCE, importSteps } from './import-steps.js';

const [mode = '', path = '', killAt = '0'] = process.argv.slice(2);
let requests = 0;

/** Starts a request and, when its number has come, dies while the engine is at it. */
async function request(action: Promise<void>): Promise<void> {
  requests++;
  if (requests === Number(killAt)) {
    // Some turns of the event loop let the engine's thread get to work; how far differs by request.
    for (let n = 0; n < requests * 3; n++) await turn();
    process.kill(process.pid, 'SIGKILL');
  }
  await action;
}

async function importFrom(store: Store): Promise<void> {
  const done = (await store.checkpoint(CRASH_INSTANCE))?.sequence ?? 0;
  const pending = await store.pendingIntent(CRASH_INSTANCE);
  for (const { intent, blocks, checkpoint } of importSteps()) {
    if (intent.sequence <= done) continue;
    await request(store.begin(pending?.sequence === intent.sequence ? pending : intent));
    for (const [n, block] of blocks.entries()) {
      await request(store.insertBlock(block, blockToken(intent, block.table, n)));
    }
    await request(store.commit(intent, checkpoint));
  }
}

const store = await openStore({ path, createIfMissing: true });
if (mode === 'hold') {
  console.log('open');
  setInterval(() => undefined, 1 << 30);
} else {
  await importFrom(store);
  await store.close();
  console.log('done');
}
