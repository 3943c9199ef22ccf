/**
 * Corpora on disk: made once for each seed and size, and used again by later runs.
 *
 * They lie in the system's folder for temporary files, in one that only this user may enter. A
 * corpus has a name only when it is complete. The name also carries a hash of the programs that make
 * it, so that a changed generator never meets an old corpus.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT, InputError } from '../../src/errors.js';
import { type CorpusOptions, type CorpusSummary, makeCorpus } from './corpus.js';
import { NGINX_CONF } from './corpus-site.js';

export interface Corpus {
  readonly accessLog: string;
  readonly nginxConf: string;
  readonly summary: CorpusSummary;
}

const MAKERS = ['corpus.js', 'corpus-site.js', 'random.js'];

/**
 * The folder of everything that the benchmark leaves behind.
 *
 * @throws InputError when somebody else made it: what lies there could then be theirs as well
 */
export function benchFolder(): string {
  const uid = process.getuid?.();
  const folder = join(tmpdir(), `limitlens-bench-${uid ?? 'user'}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (uid !== undefined && statSync(folder).uid !== uid) {
    throw new InputError(
      `${folder}: expected a folder of your own, found another user's\n  Set TMPDIR to a folder of yours.`,
      EXIT.io,
    );
  }
  return folder;
}

/** Gives the corpus, from disk where it is there already. `onMake` is told when it is not. */
export function provideCorpus(options: CorpusOptions, onMake: () => void): Corpus {
  const folder = join(benchFolder(), `corpus-${options.seed}-${options.lines}-${makersHash()}`);
  if (!existsSync(folder)) {
    onMake();
    const unfinished = mkdtempSync(join(benchFolder(), 'unfinished-'));
    try {
      writeCorpus(unfinished, options);
      renameSync(unfinished, folder);
    } catch (error) {
      rmSync(unfinished, { recursive: true, force: true });
      throw error;
    }
  }
  const summary = JSON.parse(readFileSync(join(folder, 'summary.json'), 'utf8')) as CorpusSummary;
  const corpus = {
    accessLog: join(folder, 'access.log'),
    nginxConf: join(folder, 'nginx.conf'),
    summary,
  };
  const { size } = statSync(corpus.accessLog);
  if (size !== summary.bytes) {
    throw new InputError(
      `${corpus.accessLog}: expected ${summary.bytes} bytes, found ${size}\n  Remove ${folder}; the next run makes it again.`,
      EXIT.io,
    );
  }
  return corpus;
}

function writeCorpus(folder: string, options: CorpusOptions): void {
  writeFileSync(join(folder, 'nginx.conf'), NGINX_CONF);
  const log = openSync(join(folder, 'access.log'), 'w');
  try {
    const chunks = makeCorpus(options);
    let step = chunks.next();
    for (; step.done !== true; step = chunks.next()) writeWhole(log, step.value);
    writeFileSync(join(folder, 'summary.json'), JSON.stringify(step.value));
  } finally {
    closeSync(log);
  }
}

function writeWhole(fd: number, chunk: Buffer): void {
  for (let at = 0; at < chunk.length;) at += writeSync(fd, chunk, at);
}

function makersHash(): string {
  const hash = createHash('sha256');
  for (const name of MAKERS) hash.update(readFileSync(new URL(name, import.meta.url)));
  return hash.digest('hex').slice(0, 8);
}
