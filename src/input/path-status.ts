/**
 * What stands at a path, where that can be told.
 */
import { statSync, type Stats } from 'node:fs';

/** undefined for nothing, and for what can't be looked at: whoever opens it is told why. */
export function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
