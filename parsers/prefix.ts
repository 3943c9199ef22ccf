/**
 * Takes off what syslog, journald, Docker, Kubernetes and their tools put before nginx's lines.
 *
 * Prefixes are known by their own shape, line by line, since one file can hold several kinds and
 * none. They may be nested (`kubectl logs --prefix` of a CRI line). Long lines come in parts from
 * Docker's json-file driver and from CRI; they are put together per stream. What says `stdout` or
 * `stderr` does not say which log a line is from: nginx images send both anywhere.
 *
 * Text is latin1, one character a byte, in and out, so that offsets and bytes stay true.
 *
 * Not here: telling access from error lines. A klog line of the ingress controller is no prefix
 * and stays as it is.
 */

const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
const RFC3339 = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?:Z|[+-]\\d\\d:\\d\\d)';
const TAG = '[\\w./-]+(?:\\[\\d+\\])?: ';

/** nginx's own syslog output, and what syslogd and journalctl write: `Nov 30 07:00:00 host nginx: `. */
const RFC3164 = new RegExp(
  `^(?:<\\d{1,3}>)?(?:${MONTHS}) [ \\d]\\d \\d\\d:\\d\\d:\\d\\d (?:\\S*[^\\s:] )?${TAG}`,
);
/** The same with rsyslog's long time. A log_format can begin like this, so the tag must be nginx. */
const RSYSLOG = new RegExp(`^(?:<\\d{1,3}>)?${RFC3339} \\S+ nginx[\\w./-]*(?:\\[\\d+\\])?: `);
const RFC5424 = new RegExp(
  `^<\\d{1,3}>1 (?:-|${RFC3339}) \\S+ \\S+ \\S+ \\S+ (?:-|(?:\\[(?:[^\\]\\\\]|\\\\.)*\\])+) (?:\\xef\\xbb\\xbf)?`,
);
const KUBECTL = /^\[pod\/[^\]\s]+\] /;
/** `kubectl logs --timestamps`, `docker logs -t`; nginx never writes a fraction and a Z. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z /;
const CRI = new RegExp(`^${RFC3339} (stdout|stderr) ([FP])(?::\\S*)? `);
const ERROR_HEAD = '\\d{4}/\\d\\d/\\d\\d \\d\\d:\\d\\d:\\d\\d \\[';
/** Compose pads names with two spaces at least; one is only believed before an error line. */
const COMPOSE = new RegExp(`^[A-Za-z][\\w.-]*(?: {2,}\\| | \\| (?=${ERROR_HEAD}))`);

/** Prefixes that hold all of their line; the most telling first. */
const PLAIN = [RFC5424, RFC3164, RSYSLOG, KUBECTL, COMPOSE, TIMESTAMP];

/** No line of nginx's comes near this; parts that do are given out as they are. */
const LONGEST_JOINED = 1 << 20;
/** More layers than any pipeline stacks. */
const DEEPEST = 4;

/** A part of a line, or the whole of it. */
interface Piece {
  readonly stream: string;
  readonly text: string;
  readonly isLast: boolean;
}

export class PrefixStripper {
  readonly #parts = new Map<string, string>();

  /**
   * @param line without newline
   * @returns the line without prefixes; undefined while parts of it are missing
   */
  push(line: string): string | undefined {
    let text = line;
    let layers = '';
    for (let depth = 0; depth < DEEPEST && mayHavePrefix(text); depth++) {
      const piece = readCri(text) ?? readDocker(text);
      if (piece !== undefined) {
        const joined = this.#join(layers + piece.stream, piece);
        if (joined === undefined) return undefined;
        text = joined;
        continue;
      }
      const length = prefixLength(text);
      if (length === 0) break;
      // Two pods in one file have their own streams.
      layers += text.startsWith('[pod/') || COMPOSE.test(text) ? text.slice(0, length) : '';
      text = text.slice(length);
    }
    return text;
  }

  /** Lines whose last part never came, for the end of the input. */
  drain(): string[] {
    const rest = [...this.#parts.values()];
    this.#parts.clear();
    return rest;
  }

  #join(key: string, piece: Piece): string | undefined {
    const before = this.#parts.get(key);
    if (before === undefined && piece.isLast) return piece.text;
    const joined = (before ?? '') + piece.text;
    if (piece.isLast || joined.length > LONGEST_JOINED) {
      this.#parts.delete(key);
      return joined;
    }
    this.#parts.set(key, joined);
    return undefined;
  }
}

/** A look at a byte or two, for the many lines that have no prefix. */
function mayHavePrefix(text: string): boolean {
  const first = text.charCodeAt(0);
  if (first >= 0x30 && first <= 0x39) return text[10] === 'T';
  return /^[<[{A-Za-z]/.test(text);
}

function prefixLength(text: string): number {
  for (const prefix of PLAIN) {
    const match = prefix.exec(text);
    if (match !== null) return match[0].length;
  }
  return 0;
}

function readCri(text: string): Piece | undefined {
  const match = CRI.exec(text);
  if (match === null) return undefined;
  return { stream: match[1]!, text: text.slice(match[0].length), isLast: match[2] === 'F' };
}

/** `{"log":"…\n","stream":"stderr","time":"…"}`; a log without a newline goes on in the next. */
function readDocker(text: string): Piece | undefined {
  if (!text.startsWith('{"log":"')) return undefined;
  const entry = parseObject(Buffer.from(text, 'latin1').toString('utf8'));
  const { log, stream } = entry;
  if (typeof log !== 'string' || (stream !== 'stdout' && stream !== 'stderr')) return undefined;
  if (typeof entry['time'] !== 'string') return undefined;
  const isLast = log.endsWith('\n');
  const line = isLast ? log.slice(0, -1) : log;
  return { stream, text: Buffer.from(line, 'utf8').toString('latin1'), isLast };
}

function parseObject(text: string): {
  readonly [key: string]: unknown;
  log?: unknown;
  stream?: unknown;
} {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
