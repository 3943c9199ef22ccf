/**
 * server_name and listen, after ngx_http_core_server_name() and ngx_http_core_listen().
 *
 * Not here: which server answers a request, see select-server.ts.
 */
import { addNote, refuse, type Draft, type ServerDraft } from './level.js';
import type { Directive } from './lexer.js';
import { parseInteger } from './numbers.js';
import { compilePcre } from './pcre.js';

/** Names are lower case, for nginx compares hosts in lower case; a regular expression stays. */
export function readServerName(draft: Draft, server: ServerDraft, directive: Directive): void {
  for (const name of directive.words.slice(1)) {
    const isBadStar = name.startsWith('*') && (name.length < 3 || name.charAt(1) !== '.');
    if (isBadStar || name === '.') refuse(directive, `server name "${name}" is invalid`);
    if (name === '~') refuse(directive, `empty regex in server name "${name}"`);
    if (name.startsWith('~')) noteRegex(draft, directive, name);
    server.names.push(name.startsWith('~') ? name : name.toLowerCase());
  }
}

function noteRegex(draft: Draft, directive: Directive, name: string): void {
  const compiled = compilePcre(name.slice(1), { nocase: isCaseless(name) });
  if (compiled instanceof RegExp) return;
  const message = `server name "${name}" has ${compiled.unsupported}`;
  addNote(draft, 'regex-not-evaluated', message, directive.where);
}

/** Hosts are lower case, so nginx drops the case only where a pattern has upper case in it. */
export function isCaseless(pattern: string): boolean {
  return /[A-Z]/.test(pattern);
}

const FLAG_PARAMETERS: ReadonlySet<string> = new Set([
  ...['default_server', 'default', 'bind', 'deferred', 'reuseport', 'ssl', 'http2', 'spdy'],
  ...['quic', 'proxy_protocol', 'multipath'],
]);

const VALUE_PARAMETER =
  /^(?:setfib|fastopen|backlog|rcvbuf|sndbuf|accept_filter|ipv6only|so_keepalive)=/;

export function readListen(draft: Draft, server: ServerDraft, directive: Directive): void {
  const [, text = '', ...parameters] = directive.words;
  for (const parameter of parameters) {
    if (FLAG_PARAMETERS.has(parameter) || VALUE_PARAMETER.test(parameter)) continue;
    refuse(directive, `invalid parameter "${parameter}"`);
  }
  const isDefaultServer = parameters.some((word) => /^default(?:_server)?$/.test(word));
  for (const address of parseListen(directive, text)) {
    if (server.listens.some((other) => canonicalListen(other.text) === address.canonical)) {
      refuse(directive, `a duplicate listen ${address.canonical}`);
    }
    if (isDefaultServer) {
      if (draft.defaultAddresses.has(address.canonical)) {
        refuse(directive, `a duplicate default server for ${address.canonical}`);
      }
      draft.defaultAddresses.add(address.canonical);
    }
    server.listens.push({ text: address.text, port: address.port, isDefaultServer });
  }
}

interface ParsedListen {
  readonly text: string;
  readonly canonical: string;
  readonly port: number | null;
}

function parseListen(directive: Directive, text: string): readonly ParsedListen[] {
  const context = `in "${text}" of the "listen" directive`;
  if (text.startsWith('unix:')) {
    if (text === 'unix:') refuse(directive, `no path in the unix domain socket ${context}`);
    return [{ text, canonical: text, port: null }];
  }
  const match = /^(?:(\[[^\]]*\]|[^:[\]]*):)?(\d+)-(\d+)$/.exec(text);
  if (match !== null) return parseRange(directive, context, match);
  if (text.startsWith('[') && !text.includes(']')) refuse(directive, `invalid host ${context}`);
  const { port: portText } = splitListen(text);
  const port = portText === undefined ? 80 : Number(parseInteger(portText) ?? 0n);
  if (port < 1 || port > 65535) refuse(directive, `invalid port ${context}`);
  return [{ text, canonical: canonicalListen(text), port }];
}

/** `8000-8010`: one address for each port. */
function parseRange(
  directive: Directive,
  context: string,
  [, host, low, high]: RegExpExecArray,
): readonly ParsedListen[] {
  const first = Number(low);
  const last = Number(high);
  if (first < 1 || first > 65535 || last > 65535) refuse(directive, `invalid port ${context}`);
  if (first > last) refuse(directive, `invalid port range ${context}`);
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const text = host === undefined ? `${first + i}` : `${host}:${first + i}`;
    return { text, canonical: canonicalListen(text), port: first + i };
  });
}

/** A lone number is a port, anything else without a port is a host. */
function splitListen(text: string): { host: string; port: string | undefined } {
  if (/^\d+$/.test(text)) return { host: '*', port: text };
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/.exec(text);
  return { host: match?.[1] ?? text, port: match?.[2] };
}

function canonicalListen(text: string): string {
  if (text.startsWith('unix:')) return text;
  const { host, port } = splitListen(text);
  return `${host === '*' ? '0.0.0.0' : host.toLowerCase()}:${port ?? '80'}`;
}
