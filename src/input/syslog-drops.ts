/**
 * Datagrams that the kernel dropped because a UDP socket's buffer was full: the last column of
 * /proc/net/udp and /proc/net/udp6.
 *
 * Unix datagram sockets drop nothing at the receiver: nginx, which never waits, meets EAGAIN when
 * one holds as many datagrams as the kernel allows, and says so in its error log.
 */
import { readFileSync } from 'node:fs';

/**
 * The count for the socket on a port and address.
 *
 * @param table the content of /proc/net/udp or udp6
 * @param address as dotted quad or IPv6 text; the wildcard is an address of its own
 * @returns undefined when no such socket is listed
 */
export function dropsIn(table: string, address: string, port: number): number | undefined {
  const place = `${kernelAddress(address)}:${hex(port, 4)}`;
  for (const line of table.split('\n').slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (columns[1] === place) return Number(columns.at(-1));
  }
  return undefined;
}

/** @returns undefined where there is no such table, as on other systems than Linux */
export function kernelDrops(address: string, port: number): number | undefined {
  const file = address.includes(':') ? '/proc/net/udp6' : '/proc/net/udp';
  try {
    return dropsIn(readFileSync(file, 'latin1'), address, port);
  } catch {
    return undefined;
  }
}

/**
 * How many datagrams a unix socket holds: 10 unless the machine's owner has raised it.
 *
 * @returns undefined where the kernel does not tell
 */
export function unixQueueDatagrams(): number | undefined {
  try {
    return Number(readFileSync('/proc/sys/net/unix/max_dgram_qlen', 'latin1'));
  } catch {
    return undefined;
  }
}

/** The kernel prints each word of four bytes as the machine holds it: little-endian here. */
function kernelAddress(address: string): string {
  const bytes = address.includes(':') ? ipv6Bytes(address) : address.split('.').map(Number);
  let text = '';
  for (let i = 0; i < bytes.length; i += 4) {
    text += bytes
      .slice(i, i + 4)
      .reverse()
      .map((byte) => hex(byte, 2))
      .join('');
  }
  return text;
}

function ipv6Bytes(address: string): number[] {
  const [before = '', after] = address.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => parseInt(group, 16));
  const head = groups(before);
  const tail = groups(after ?? '');
  const zeros = new Array<number>(8 - head.length - tail.length).fill(0);
  return [...head, ...zeros, ...tail].flatMap((group) => [group >> 8, group & 0xff]);
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
