/**
 * Addresses to listen on, as options write them.
 */
import { isIP } from 'node:net';
import { EXIT, InputError } from '../errors.js';

export interface ListenAddress {
  /** undefined for every address of the machine. */
  readonly host: string | undefined;
  /** 0 for any free one. */
  readonly port: number;
}

/**
 * `127.0.0.1:9545`, `[::1]:9545`, `:9545` for every address.
 *
 * @param option how a message names it
 * @throws InputError 64
 */
export function parseListen(text: string, option = '--listen'): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new InputError(
      `${option} ${text}: expected an address and port like 127.0.0.1:9545`,
      EXIT.usage,
    );
  }
  const host = match[1] ?? match[2];
  return { host: host === '' ? undefined : host, port };
}

/** Whether only this machine can reach it. A name other than localhost may be anything. */
export function isLoopback(host: string | undefined): boolean {
  if (host === undefined) return false;
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** `http://127.0.0.1:9545`, with the brackets that IPv6 needs; every address is asked on loopback. */
export function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  const known = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `${scheme}://${isIP(known) === 6 ? `[${known}]` : known}:${port}`;
}
