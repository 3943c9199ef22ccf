/**
 * Addresses that are seldom a client: when one of them is limited, the key may stand for everyone
 * behind a proxy, and the realip module may be missing.
 */
import { type Finding, finding } from './explanation.js';

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^unix:/, 'a unix socket'],
  [/^(?:127\.|::1$|::ffff:127\.)/, 'a loopback address'],
  [
    /^(?:::ffff:)?(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/,
    'a private address',
  ],
  [/^(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]):/i, 'a private address'],
];

/** Says so when the client of a limited request is not a public address. */
export function clientFindings(client: string | null): Finding[] {
  const kind = KINDS.find(([pattern]) => client !== null && pattern.test(client))?.[1];
  if (kind === undefined) return [];
  const message =
    `${client} is ${kind}. If a proxy stands in front of nginx, all its clients may share one key: ` +
    'set_real_ip_from and real_ip_header tell nginx who they are.';
  return [finding('client_is_not_public', message)];
}
