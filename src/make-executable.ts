/** Makes the built command executable: the compiler does not, and npm only does it on install. */
import { chmodSync } from 'node:fs';

chmodSync(new URL('./cli.js', import.meta.url), 0o755);
