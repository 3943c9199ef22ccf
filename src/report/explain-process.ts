/**
 * Error-log lines that are not about a request's limits: what processes say about themselves,
 * refused configurations, and all the rest.
 */
import type { OtherEvent } from '../../parsers/error/error-line.js';
import type { MarkName, ProcessMark } from '../../parsers/error/process-mark.js';
import type { ConfigurationRefused } from '../../parsers/error/refusal.js';
import { quote } from '../errors.js';
import { readable, readableOrNull, redact } from './explain-request.js';
import { type Explanation, blank } from './explanation.js';

const MARKS: Readonly<Record<MarkName, string>> = {
  signal_process_started: 'nginx -s was run: a signal is on its way to the master.',
  signal_received: 'A process of nginx received a signal.',
  reconfiguring:
    'The master reads its configuration again. Zones of the same size and key keep their state.',
  reopening_logs: 'Log files are reopened: a rotation. Zones keep their state.',
  start_worker_processes: 'The master starts its workers: a start, or a reload that was accepted.',
  start_process: 'A process was started.',
  process_exited: 'A process has ended.',
  gracefully_shutting_down:
    'An old worker serves its last requests. Its lines may still come after those of new ones.',
  exiting: 'A process begins to exit.',
  exit: 'A process has exited.',
  changing_binary: 'The binary is being exchanged: when the old one quits, all zone state is lost.',
  inherited_sockets: 'A new binary took over the sockets of the old one. Its zones begin empty.',
};

/** A reload, a rotation, the start or end of a process. */
export function explainMark(line: ProcessMark): Explanation {
  const about = [
    line.role === null ? null : `${readable(line.role)} ${line.childPid}`,
    line.signal,
  ].filter((part) => part !== null);
  const detail = about.length === 0 ? '' : ` (${about.join(', ')})`;
  return {
    ...blank(line.kind, `Not a limit event. ${MARKS[line.mark]}${detail}`),
    mark: line.mark,
    message: readable(line.message),
  };
}

const REFUSALS: Readonly<Record<ConfigurationRefused['kind'], string>> = {
  zone_size_conflict: 'one zone is declared with two sizes.',
  zone_key_conflict: 'a zone of the same size had another key before.',
  zone_use_conflict: 'one name is declared for two different uses.',
  refused: 'see the message.',
};

/** nginx did not take a configuration. */
export function explainRefusal(line: ConfigurationRefused): Explanation {
  const zone = line.zone === null ? '' : ` Zone ${quote(readable(line.zone))}.`;
  const summary = `nginx refused a configuration: ${REFUSALS[line.kind]}${zone}`;
  return {
    ...blank(line.kind, summary),
    zone: readableOrNull(line.zone),
    message: readable(line.message),
    arithmetic: [
      'At a reload the old workers and the old limits stay in force, although nginx -s reload returns 0.',
    ],
  };
}

const KNOWN: readonly (readonly [RegExp, string])[] = [
  [
    /could not allocate new session in SSL session shared cache/,
    'The cache of TLS sessions is full. It shares no memory with the zones of limits.',
  ],
  [/^[IWEF]\d{4} \d\d:/, 'A line of a Kubernetes program (klog), not of nginx.'],
  [/^client sent invalid /, 'nginx answers 400 before any limit is reached.'],
];

/** A line of no kind above; its message is kept, without what may be a secret. */
export function explainOther(line: OtherEvent, level: string, showArgs: boolean): Explanation {
  const what = KNOWN.find(([pattern]) => pattern.test(line.message))?.[1];
  return {
    ...blank(line.kind, `Not a limit event.${what === undefined ? '' : ` ${what}`}`),
    message: messageOf(line.message, level, showArgs),
  };
}

/** Debug lines quote headers and bodies; other lines quote requests. */
function messageOf(message: string, level: string, showArgs: boolean): string {
  const quoteAt = message.indexOf('"');
  if (level !== 'debug' || showArgs || quoteAt < 0) return redact(message, showArgs);
  return `${redact(message.slice(0, quoteAt), showArgs)}"…`;
}
