/**
 * Log formats that are known by name: nginx's own, those of its example configuration and of
 * ingress-nginx, and limitlens's, which log everything that a replay can use.
 */
import type { LogFormat } from './format-text.js';

const COMBINED =
  '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"';

/** In this order: what tells a replay most comes first. */
const REPLAY_FIELDS = [
  'msec',
  'request_time',
  'time_iso8601',
  'pid',
  'connection',
  'connection_requests',
  'request_id',
  'remote_addr',
  'realip_remote_addr',
  'server_name',
  'server_port',
  'status',
  'limit_req_status',
  'limit_conn_status',
  'upstream_status',
  'upstream_response_time',
  'request_length',
  'body_bytes_sent',
  'host',
  'request',
  'uri',
  'http_referer',
  'http_user_agent',
] as const;

/** Fields that nginx fills with a number always, so that JSON needs no quotes around them. */
const NUMBERS: ReadonlySet<string> = new Set([
  'msec',
  'request_time',
  'pid',
  'connection',
  'connection_requests',
  'status',
  'request_length',
  'body_bytes_sent',
]);

const LIMITLENS = REPLAY_FIELDS.map((name) => `${name}="$${name}"`).join(' ');
const LIMITLENS_JSON = `{${REPLAY_FIELDS.map((name) =>
  NUMBERS.has(name) ? `"${name}":$${name}` : `"${name}":"$${name}"`,
).join(',')}}`;

/** nginx's predefined format. */
export const COMBINED_FORMAT: LogFormat = { name: 'combined', escape: 'default', text: COMBINED };

export const PREDEFINED_FORMATS: readonly LogFormat[] = [
  COMBINED_FORMAT,
  // The configuration file that comes with nginx.
  { name: 'main', escape: 'default', text: `${COMBINED} "$http_x_forwarded_for"` },
  {
    name: 'upstreaminfo',
    escape: 'default',
    text: `${COMBINED} $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id`,
  },
  { name: 'limitlens', escape: 'default', text: LIMITLENS },
  { name: 'limitlens_json', escape: 'json', text: LIMITLENS_JSON },
];

/** The predefined format of that name. */
export function predefinedFormat(name: string): LogFormat | undefined {
  return PREDEFINED_FORMATS.find((format) => format.name === name);
}
