/**
 * Where to receive syslog, as the user writes it: `udp://127.0.0.1:5514`, `udp://[::1]:5514`,
 * `unix:/run/limitlens/syslog.sock`, `unix:/run/x.sock?mode=0660`, `systemd:3` for a socket that
 * systemd opened.
 */
import { EXIT, InputError } from '../errors.js';
import type { SyslogAddress } from './syslog-worker.js';

const SYSLOG_PORT = 514;
/** As /dev/log has it: nginx's workers run as another user. */
const DEFAULT_MODE = '0666';

/** @throws InputError 64 */
export function parseSyslogAddress(text: string): SyslogAddress {
  const udp = /^udp:\/\/(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/?]+))(?::(\d{1,5}))?$/.exec(text);
  if (udp !== null) {
    const port = Number(udp[3] ?? SYSLOG_PORT);
    if (port <= 65_535) return { kind: 'udp', host: udp[1] ?? udp[2]!, port };
  }
  const unix = /^unix:(?:\/\/)?(\/[^?]*)(?:\?mode=(0?[0-7]{3}))?$/.exec(text);
  if (unix !== null) return { kind: 'path', path: unix[1]!, mode: unix[2] ?? DEFAULT_MODE };
  const systemd = /^systemd:(\d{1,4})$/.exec(text);
  if (systemd !== null) return { kind: 'descriptor', fd: Number(systemd[1]) };
  throw new InputError(
    `--syslog ${text}: expected udp://127.0.0.1:5514, unix:/run/limitlens/syslog.sock, or ` +
      'systemd:3 for a socket that systemd opened',
    EXIT.usage,
  );
}

/** What to give to receive what nginx sends to this server. @param server as nginx.conf has it */
export function addressFor(server: string): string {
  if (server.startsWith('unix:')) return server;
  const hasPort = /:\d+$/.test(server) && !/^\[[^\]]*$/.test(server);
  return `udp://${hasPort ? server : `${server}:${SYSLOG_PORT}`}`;
}
