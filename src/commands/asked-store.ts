/**
 * A store that is opened to be asked, and closed again.
 */
import { EXIT, InputError } from '../errors.js';
import { instanceNames } from '../store/queries.js';
import { openStore, type Store } from '../store/store.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

/**
 * Asks a store that is there.
 *
 * @param choice.instance where given, the store has to hold something of it: a name that is written
 * otherwise would be answered as one that was never limited
 * @throws InputError as openStore(); noInput (66) for an instance that is not there among others
 */
export async function askStore<T>(
  choice: StoreChoice & { readonly instance?: string },
  ask: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openStore({
    ...storeOptions(choice),
    createIfMissing: false,
    readOnly: true,
  });
  try {
    if (choice.instance !== undefined) await checkInstance(store, choice.instance);
    return await ask(store);
  } finally {
    await store.close();
  }
}

async function checkInstance(store: Store, instance: string): Promise<void> {
  const names = await instanceNames(store);
  if (names.length === 0 || names.includes(instance)) return;
  throw new InputError(
    `--instance ${instance}: the store holds nothing of it\n  It holds: ${names.join(', ')}.`,
    EXIT.noInput,
  );
}
