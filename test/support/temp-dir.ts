/**
 * Directories that live as long as one test.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What this needs of node:test's TestContext. */
export interface Cleanup {
  after(fn: () => void | Promise<void>): void;
}

/** A new, empty directory, removed with all it holds when the test ends. */
export function makeTempDir(t: Cleanup, prefix = 'limitlens-'): string {
  const dir = mkdtempSync(join(tmpdir(), prefix));
  t.after(() => {
    rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}
