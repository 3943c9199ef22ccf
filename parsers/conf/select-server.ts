/**
 * Which server answers a request, after ngx_http_find_virtual_server().
 *
 * nginx asks among the servers that listen on the address the request came in by. A log knows the
 * port at most, so servers are told apart by port here, and two addresses with one port count as
 * one.
 */
import type { NginxConf, ServerConf } from './model.js';
import { compilePcre } from './pcre.js';
import { isCaseless } from './server-lines.js';

/** The servers of one port by their names; of two with one name the first one has it. */
interface NameIndex {
  readonly exact: ReadonlyMap<string, ServerConf>;
  /** By the part behind `*.`. */
  readonly leading: ReadonlyMap<string, ServerConf>;
  /** By the part before `.*`. */
  readonly trailing: ReadonlyMap<string, ServerConf>;
  readonly regexes: readonly { readonly regex: RegExp; readonly server: ServerConf }[];
  readonly defaultServer: ServerConf | undefined;
}

const indexes = new WeakMap<NginxConf, Map<number | undefined, NameIndex>>();

/**
 * @param host $host or the Host header; empty when the request had none, undefined when unknown
 * @param port $server_port, undefined when unknown
 * @returns undefined when the configuration has no server at all
 */
export function selectServer(
  conf: NginxConf,
  host: string | undefined,
  port: number | undefined,
): ServerConf | undefined {
  const index = indexOf(conf, port);
  if (host === undefined) return index.defaultServer;
  const name = hostName(host);
  return (
    index.exact.get(name) ??
    leadingWildcard(index, name) ??
    trailingWildcard(index, name) ??
    regexMatch(index, name) ??
    index.defaultServer
  );
}

/** As ngx_http_validate_host() leaves it: lower case, without port and final dot. */
function hostName(host: string): string {
  const bare = /^\[[^\]]*\]/.exec(host)?.[0] ?? host.replace(/:.*$/s, '');
  return bare.replace(/\.$/, '').toLowerCase();
}

function leadingWildcard(index: NameIndex, name: string): ServerConf | undefined {
  if (index.leading.size === 0) return undefined;
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
    const server = index.leading.get(name.slice(dot + 1));
    if (server !== undefined) return server;
  }
  return undefined;
}

function trailingWildcard(index: NameIndex, name: string): ServerConf | undefined {
  if (index.trailing.size === 0) return undefined;
  for (let dot = name.lastIndexOf('.'); dot > 0; dot = name.lastIndexOf('.', dot - 1)) {
    const server = index.trailing.get(name.slice(0, dot));
    if (server !== undefined) return server;
  }
  return undefined;
}

function regexMatch(index: NameIndex, name: string): ServerConf | undefined {
  if (name === '') return undefined;
  return index.regexes.find(({ regex }) => regex.test(name))?.server;
}

function indexOf(conf: NginxConf, port: number | undefined): NameIndex {
  let byPort = indexes.get(conf);
  if (byPort === undefined) indexes.set(conf, (byPort = new Map<number | undefined, NameIndex>()));
  let index = byPort.get(port);
  if (index === undefined) byPort.set(port, (index = buildIndex(conf, port)));
  return index;
}

function buildIndex(conf: NginxConf, port: number | undefined): NameIndex {
  const listening = conf.servers.filter((server) =>
    server.listens.some((listen) => port === undefined || listen.port === port),
  );
  // A port that no server listens on was mapped by something in front of nginx.
  const servers = listening.length > 0 ? listening : conf.servers;
  const exact = new Map<string, ServerConf>();
  const leading = new Map<string, ServerConf>();
  const trailing = new Map<string, ServerConf>();
  const regexes: { regex: RegExp; server: ServerConf }[] = [];
  for (const server of servers) {
    for (const name of server.names) {
      if (name.startsWith('~')) {
        const regex = compilePcre(name.slice(1), { nocase: isCaseless(name) });
        if (regex instanceof RegExp) regexes.push({ regex, server });
      } else if (name.startsWith('*.')) addFirst(leading, name.slice(2), server);
      else if (name.endsWith('.*')) addFirst(trailing, name.slice(0, -2), server);
      else if (name.startsWith('.')) {
        addFirst(exact, name.slice(1), server);
        addFirst(leading, name.slice(1), server);
      } else addFirst(exact, name, server);
    }
  }
  const marked = servers.find((server) =>
    server.listens.some(
      (listen) => listen.isDefaultServer && (port === undefined || listen.port === port),
    ),
  );
  return { exact, leading, trailing, regexes, defaultServer: marked ?? servers[0] };
}

function addFirst(names: Map<string, ServerConf>, name: string, server: ServerConf): void {
  if (!names.has(name)) names.set(name, server);
}
