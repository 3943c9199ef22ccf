/**
 * What master and workers say about themselves: the marks that cut a log into generations.
 *
 * Sentences of ngx_process_cycle.c, ngx_process.c and ngx_cycle.c. A reload shows as the signal's
 * line, `reconfiguring`, new `start worker process N`, then `gracefully shutting down` from the
 * old ones, whose lines may still come after those of the new.
 */

export type MarkName =
  | 'signal_process_started'
  | 'signal_received'
  | 'reconfiguring'
  | 'reopening_logs'
  | 'start_worker_processes'
  | 'start_process'
  | 'process_exited'
  | 'gracefully_shutting_down'
  | 'exiting'
  | 'exit'
  | 'changing_binary'
  | 'inherited_sockets';

export interface ProcessMark {
  readonly kind: 'process_mark';
  readonly mark: MarkName;
  /** `worker process`, `new binary process`, … for start_process and process_exited. */
  readonly role: string | null;
  /** The process that was started or has ended. */
  readonly childPid: number | null;
  /** `SIGHUP`, for signal_received. */
  readonly signal: string | null;
  readonly message: string;
}

const SENTENCES: ReadonlyMap<string, MarkName> = new Map([
  ['signal process started', 'signal_process_started'],
  ['reconfiguring', 'reconfiguring'],
  ['reopening logs', 'reopening_logs'],
  ['start worker processes', 'start_worker_processes'],
  ['gracefully shutting down', 'gracefully_shutting_down'],
  ['exiting', 'exiting'],
  ['exit', 'exit'],
  ['changing binary', 'changing_binary'],
]);

const START = /^start ([a-z ]*process) (\d+)$/;
const EXITED = /^([a-z ]*process) (\d+) exited /;
const SIGNAL = /^signal \d+ \((SIG[A-Z0-9]+)\) received/;

/** Reads a message; undefined when it is not such a mark. */
export function parseProcessMark(message: string): ProcessMark | undefined {
  const plain = SENTENCES.get(message);
  if (plain !== undefined) return markOf(plain, message);
  const start = START.exec(message);
  if (start !== null) return markOf('start_process', message, start[1], start[2]);
  const exited = EXITED.exec(message);
  if (exited !== null) return markOf('process_exited', message, exited[1], exited[2]);
  const signal = SIGNAL.exec(message);
  if (signal !== null) return { ...markOf('signal_received', message), signal: signal[1]! };
  if (message.startsWith('using inherited sockets from ')) {
    return markOf('inherited_sockets', message);
  }
  return undefined;
}

function markOf(mark: MarkName, message: string, role?: string, childPid?: string): ProcessMark {
  return {
    kind: 'process_mark',
    mark,
    role: role ?? null,
    childPid: childPid === undefined ? null : Number(childPid),
    signal: null,
    message,
  };
}
