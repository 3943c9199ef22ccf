/**
 * An interrupted import whose logs are not there any more: it cannot be done again, and the rows that
 * it has stored cannot be told from others.
 *
 * So it is ended as it stands. Its logs are known from then on up to where they would have been read:
 * should they come back, nothing of them counts twice. The limiter's state stays that of the import
 * before.
 */
import { EXIT, InputError } from '../errors.js';
import type { Store } from '../store/store.js';
import type { Checkpoint, Intent, SourceProgress, SourceRange } from '../store/write-ahead.js';

const MOST_NAMES = 5;

/** What is said of logs that an interrupted import needs again; exit 74. */
export function interrupted(pending: Intent, missing: readonly SourceRange[]): InputError {
  const names = missing.slice(0, MOST_NAMES).map(({ name, sourceId }) => name ?? sourceId);
  const more = missing.length > names.length ? ` and ${missing.length - names.length} more` : '';
  const count = pending.ranges.length;
  return new InputError(
    `an import into instance "${pending.instance}" was interrupted (begun by ${pending.startedBy}), ` +
      `and ${missing.length} of its ${count} logs ${missing.length === 1 ? 'is' : 'are'} not among the files given now: ` +
      `${names.join(', ')}${more}\n` +
      '  Give them too, under any name: it goes on without counting anything twice.\n' +
      '  If they are gone, --abandon-interrupted ends that import as it stands.',
    EXIT.io,
  );
}

/** Ends an interrupted import where it stands. */
export async function abandon(
  store: Store,
  pending: Intent,
  checkpoint: Checkpoint | undefined,
): Promise<void> {
  const sources = new Map(checkpoint?.sources.map((source) => [source.sourceId, source]));
  for (const range of pending.ranges) {
    if (range.toByte <= range.fromByte) continue;
    sources.set(range.sourceId, progressOf(range, sources.get(range.sourceId)));
  }
  const { instance, sequence } = pending;
  await store.commit(pending, {
    instance,
    sequence,
    sources: [...sources.values()],
    state: checkpoint?.state ?? '',
    logTimeMs: checkpoint?.logTimeMs ?? 0,
  });
}

/** As if the log had been read to the end that was fixed for it; what stands before is not known. */
function progressOf(range: SourceRange, known: SourceProgress | undefined): SourceProgress {
  const { sourceId, toByte, name = '', headLength = 0, isAlone } = range;
  const fresh: SourceProgress = {
    sourceId,
    // Of several logs that begin alike the later ones have a number behind the hash.
    headHash: headLength === 0 ? '' : sourceId.replace(/-\d+$/, ''),
    headLength,
    tailHash: '',
    offset: toByte,
    lines: 0,
    name,
    firstMs: 0,
    lastMs: 0,
    complete: false,
    ...(isAlone === true ? { kind: 'error', isAlone } : {}),
  };
  return known === undefined ? fresh : { ...known, offset: toByte, tailHash: '' };
}
