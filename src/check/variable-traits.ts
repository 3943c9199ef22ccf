/**
 * nginx's own variables: which of them a client writes, which can be empty, how long they get.
 *
 * A variable that is not named here (of Lua, `set`, another module) is taken as short, never
 * empty and not the client's; the configuration's notes say that it was not followed.
 */
import type { Traits } from './key-traits.js';

/** As long as the request's header lets it be. */
const ANY_LENGTH = Number.POSITIVE_INFINITY;

const SHORT_BYTES = 16;
/** The longest text of an IPv6 address, with the prefix of a mapped one. */
const ADDRESS_TEXT_BYTES = 45;

const BASE: Traits = {
  free: new Set(),
  choice: new Set(),
  emptyByChoice: [],
  empty: [],
  isByAddress: false,
  longestBytes: SHORT_BYTES,
  isMixed: false,
};

/** Values of these differ in length from request to request, by their nature. */
const OF_ANY_SIZE: ReadonlySet<string> = new Set([
  ...['uri', 'document_uri', 'request_uri', 'request', 'request_filename', 'args', 'query_string'],
  ...['http_user_agent', 'http_referer', 'http_cookie', 'http_x_forwarded_for', 'request_body'],
  'proxy_add_x_forwarded_for',
]);

/** The client's own text, missing when the client leaves it out. */
const CLIENT_TEXT: ReadonlySet<string> = new Set([
  ...['args', 'query_string', 'remote_user', 'content_type', 'content_length', 'request_body'],
]);

/** The client's own text, and never empty. */
const CLIENT_TEXT_ALWAYS: ReadonlySet<string> = new Set([
  ...['request_uri', 'request', 'proxy_add_x_forwarded_for'],
]);

/** What a client names when it asks for something; it gets no fresh key for the same thing. */
const NAMES_OF_THINGS: ReadonlySet<string> = new Set([
  ...['uri', 'document_uri', 'request_filename', 'host', 'ssl_server_name'],
]);

const EMPTY_BECAUSE: Readonly<Record<string, string>> = {
  https: '$https is empty without TLS',
  is_args: '$is_args is empty without arguments',
  proxy_protocol_addr: '$proxy_protocol_addr is empty without the PROXY protocol',
  ssl_server_name: '$ssl_server_name is empty without SNI',
};

/** @param name in lower case, without the dollar */
export function traitsOfVariable(name: string, hasNamelessServer: boolean): Traits {
  const isMixed = OF_ANY_SIZE.has(name);
  if (name === 'binary_remote_addr') return { ...BASE, isByAddress: true };
  if (name === 'remote_addr') {
    return { ...BASE, isByAddress: true, longestBytes: ADDRESS_TEXT_BYTES };
  }
  if (/^(?:arg|http|cookie)_/.test(name) || CLIENT_TEXT.has(name)) {
    return {
      ...BASE,
      free: new Set([name]),
      empty: [`$${name} is empty in a request without it`],
      longestBytes: ANY_LENGTH,
      isMixed,
    };
  }
  if (CLIENT_TEXT_ALWAYS.has(name)) {
    return { ...BASE, free: new Set([name]), longestBytes: ANY_LENGTH, isMixed };
  }
  const because = EMPTY_BECAUSE[name];
  const empty = because === undefined ? [] : [because];
  if (NAMES_OF_THINGS.has(name)) return { ...BASE, empty, longestBytes: ANY_LENGTH, isMixed };
  if (name === 'server_name' && hasNamelessServer) {
    return { ...BASE, empty: ['$server_name is empty in a server without server_name'] };
  }
  return { ...BASE, empty };
}
