/**
 * Error logs without their access logs: when their lines stand for the requests they name, and what
 * that means for an access log of their time that comes later.
 *
 * Not here: how a line becomes a request (../replay/error-events.ts).
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { EXIT, InputError } from '../errors.js';
import { FileLines } from '../input/file-lines.js';
import { SAMPLE_BYTES, sampleLines } from '../input/head.js';
import { AccessFields } from '../replay/access-fields.js';
import type { GenerationInput } from '../replay/generations.js';
import type { SourceProgress } from '../store/write-ahead.js';
import type { ImportPlan } from './import-plan.js';
import { rotationStem, type AccessFile } from './log-files.js';
import type { OpenedLogs } from './open-logs.js';

/**
 * Whether lines stand for requests: no access log is given, an empty one included, and the instance
 * has never had one. Otherwise lines wait for the access log of their time (line-hold.ts).
 */
export function isErrorLogAlone(
  logs: OpenedLogs,
  sources: readonly SourceProgress[],
  generations: readonly GenerationInput[],
): boolean {
  if (logs.access.length > 0 || sources.some((source) => source.kind !== 'error')) return false;
  const confs = generations.map(({ conf }) => conf);
  return !logs.empty.some(({ path }) => isAccessLogOf(path, confs));
}

/** Whether an empty file is an access log, by its name. */
function isAccessLogOf(path: string, confs: readonly NginxConf[]): boolean {
  const stem = rotationStem(path);
  return confs.some((conf) => conf.accessLogs.some((log) => rotationStem(log.path) === stem));
}

/**
 * Refuses access logs whose refused and delayed requests an error log has brought in already.
 *
 * @throws InputError 65 naming both logs and the way out
 */
export async function refuseCountedByLines(
  logs: OpenedLogs,
  plan: ImportPlan,
  sources: readonly SourceProgress[],
): Promise<void> {
  const alone = sources.filter((source) => source.isAlone === true);
  if (alone.length === 0) return;
  for (const file of logs.access) {
    const { range, toOffset } = plan.get(file.head)!;
    if (toOffset <= range.fromOffset || range.known !== undefined) continue;
    const { firstMs, lastMs } = await timesOf(file);
    const other = alone.find((source) => source.firstMs <= lastMs && source.lastMs >= firstMs);
    if (other === undefined) continue;
    throw new InputError(
      `${file.head.path}: expected requests that are not counted yet, found some of the time of ${other.name} ` +
        `(${new Date(other.firstMs).toISOString()} to ${new Date(other.lastMs).toISOString()}), ` +
        'which was imported without an access log: its lines count as requests\n' +
        '  Import both in one call into another --instance or --store.',
      EXIT.badLines,
    );
  }
}

/** Times of a log's first and last lines; of standard input the end is not known. */
async function timesOf(file: AccessFile): Promise<{ firstMs: number; lastMs: number }> {
  const { path, sample, isGzip, sizeBytes } = file.head;
  const first = sampleLines(sample).map((line) => endMs(file, line));
  const firstMs = first.find((ms) => !Number.isNaN(ms)) ?? -Infinity;
  if (path === '-') return { firstMs, lastMs: Infinity };
  const fromOffset = isGzip ? 0 : Math.max(0, sizeBytes - SAMPLE_BYTES);
  const lines = new FileLines(path, { isGzip, fromOffset });
  let lastMs = firstMs;
  try {
    while (await lines.next()) {
      const ms = endMs(file, lines.bytes.slice(lines.start, lines.end));
      if (ms > lastMs) lastMs = ms;
    }
  } catch (error) {
    // Damaged data: where it is read, that is said.
    if (!(error instanceof InputError)) throw error;
  } finally {
    lines.close();
  }
  return { firstMs, lastMs };
}

/** NaN for a line that is none of the log's format. */
function endMs(file: AccessFile, line: Uint8Array): number {
  if (file.scanner.scan(line, 0, line.length) >= 0) return NaN;
  return new AccessFields(file.scanner).endMs(line);
}
