/**
 * Which rule set a logged request was under: its server, then its location.
 *
 * The server is told by $server_name, else by $host and $server_port, else by which access_log the
 * file is. The location is found from the request line, normalised as nginx does, since $uri is the
 * last one after error_page and other internal redirects; a limit is charged in the first location.
 * Follows ngx_http_find_virtual_server() and ngx_http_core_find_location() through parsers/conf.
 *
 * Paths are looked up by their bytes as logged; a server's answers are remembered, within a bound.
 */
import { decodeText } from '../../parsers/access/escape.js';
import type { Escape } from '../../parsers/access/format-text.js';
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import { RequestLine } from '../../parsers/access/request-line.js';
import { parseInteger } from '../../parsers/bytes.js';
import { findRules, normalizeUri } from '../../parsers/conf/location.js';
import type { ServerConf } from '../../parsers/conf/model.js';
import { selectServer } from '../../parsers/conf/select-server.js';
import { KeyTable } from '../keys/key-table.js';
import { latin1Text } from './access-fields.js';
import type { Generation } from './generations.js';
import { RedirectSource } from './redirect-source.js';

const SPACE = 0x20;
/** Answers remembered per server before they are forgotten at once. */
const MOST_PATHS = 65_536;

/** The request never came to its location: nginx refused its request line. */
export const REFUSED = -2;

class PathMemory {
  #ids = new KeyTable();
  #rules = new Int32Array(1024);

  /** The rule set for this path, or -1 when it is not remembered. */
  find(bytes: Uint8Array, start: number, length: number): number {
    const id = this.#ids.find(bytes, start, length);
    return id < 0 ? -1 : this.#rules[id]!;
  }

  remember(bytes: Uint8Array, start: number, length: number, rules: number): void {
    if (this.#ids.size >= MOST_PATHS) this.#ids.clear();
    const id = this.#ids.intern(bytes, start, length);
    this.#ids.retain(id);
    if (id >= this.#rules.length) {
      const longer = new Int32Array(Math.max(id + 1, this.#rules.length * 2));
      longer.set(this.#rules);
      this.#rules = longer;
    }
    this.#rules[id] = rules;
  }
}

export class RuleFinder {
  readonly #scanner: LineScanner;
  readonly #escape: Escape;
  readonly #generation: Generation;
  readonly #requestLine = new RequestLine();
  readonly #request: number;
  readonly #requestUri: number;
  readonly #uri: number;
  readonly #serverName: number;
  readonly #host: number;
  readonly #port: number;
  /** The servers that write to this file, when the configuration tells. */
  readonly #fileServers: readonly ServerConf[];
  readonly #servers = new Map<string, ServerConf | undefined>();
  readonly #paths: PathMemory[];
  /** Servers whose every request falls under one rule set. */
  readonly #only: Int32Array;
  readonly #sources: (RedirectSource | undefined)[] = [];
  /** By URI of a server whose locations lead to it; with the server's number in front. */
  readonly #redirected = new Map<string, number>();
  /** Requests whose server could not be told. */
  unknownServer = 0;

  constructor(scanner: LineScanner, generation: Generation, fileServers: readonly ServerConf[]) {
    this.#scanner = scanner;
    this.#escape = scanner.format.escape;
    this.#generation = generation;
    this.#fileServers = fileServers;
    this.#request = scanner.indexOf('request');
    this.#requestUri = scanner.indexOf('request_uri');
    this.#uri = Math.max(scanner.indexOf('uri'), scanner.indexOf('document_uri'));
    this.#serverName = scanner.indexOf('server_name');
    this.#host = Math.max(scanner.indexOf('host'), scanner.indexOf('http_host'));
    this.#port = scanner.indexOf('server_port');
    this.#paths = generation.conf.servers.map(() => new PathMemory());
    this.#only = Int32Array.from(generation.conf.servers, onlyRuleSet);
  }

  /** What of the log's fields decides the location; null when it can't be told. */
  get pathField(): string | null {
    if (this.#request >= 0) return 'request';
    if (this.#requestUri >= 0) return 'request_uri';
    return this.#uri >= 0 ? 'uri' : null;
  }

  /** Every server has one rule set for all its paths: no path is needed. */
  get isPathless(): boolean {
    return this.#only.every((rules) => rules >= 0);
  }

  /**
   * The rule set (in the common numbering) of the line just scanned; -1 when it can't be told,
   * REFUSED when nginx refused the request line.
   */
  find(bytes: Uint8Array): number {
    const server = this.#serverOf(bytes);
    if (server === undefined) {
      this.unknownServer++;
      return -1;
    }
    const only = this.#only[server.id]!;
    if (this.#request >= 0) {
      const { starts, ends } = this.#scanner;
      const start = starts[this.#request]!;
      const end = ends[this.#request]!;
      if (only >= 0) {
        return hasMethod(bytes, start, end) ? this.#generation.ruleBase + only : REFUSED;
      }
      const line = this.#requestLine;
      if (!line.split(bytes, start, end)) return REFUSED;
      return this.#inServer(server, bytes, line.pathStart, line.pathEnd, true);
    }
    if (only >= 0) return this.#generation.ruleBase + only;
    const field = this.#requestUri >= 0 ? this.#requestUri : this.#uri;
    if (field < 0) return -1;
    const start = this.#scanner.starts[field]!;
    const end = this.#scanner.ends[field]!;
    if (field === this.#uri) return this.#inServer(server, bytes, start, end, false);
    return this.#inServer(server, bytes, start, endOfPath(bytes, start, end), true);
  }

  /**
   * The rule set that a request came in under, when it was answered under another URI than its own;
   * -1 where the log has the request line, or the configuration does not tell.
   */
  findSource(bytes: Uint8Array): number {
    if (this.#request >= 0 || this.#requestUri >= 0 || this.#uri < 0) return -1;
    const server = this.#serverOf(bytes);
    if (server === undefined) return -1;
    const source = (this.#sources[server.id] ??= new RedirectSource(server));
    if (source.isEmpty) return -1;
    const uri = this.#field(bytes, this.#uri);
    const name = `${server.id} ${uri}`;
    let rules = this.#redirected.get(name);
    if (rules === undefined) {
      const found = source.find(uri);
      rules = found === undefined ? -1 : this.#generation.ruleBase + found.id;
      if (this.#redirected.size >= MOST_PATHS) this.#redirected.clear();
      this.#redirected.set(name, rules);
    }
    return rules;
  }

  #inServer(
    server: ServerConf,
    bytes: Uint8Array,
    start: number,
    end: number,
    isRaw: boolean,
  ): number {
    const memory = this.#paths[server.id]!;
    const known = memory.find(bytes, start, end - start);
    if (known !== -1) return known;
    const rules = this.#locate(server, bytes, start, end, isRaw);
    memory.remember(bytes, start, end - start, rules);
    return rules;
  }

  #locate(
    server: ServerConf,
    bytes: Uint8Array,
    start: number,
    end: number,
    isRaw: boolean,
  ): number {
    const raw = start === end ? '/' : latin1Text(bytes, start, end, this.#escape);
    const uri = isRaw ? normalizeUri(raw, server.mergeSlashes) : raw;
    return uri === undefined ? REFUSED : this.#generation.ruleBase + findRules(server, uri).id;
  }

  #serverOf(bytes: Uint8Array): ServerConf | undefined {
    const { servers } = this.#generation.conf;
    if (servers.length <= 1) return servers[0];
    if (this.#serverName < 0 && this.#host < 0) {
      return this.#fileServers.length === 1 ? this.#fileServers[0] : undefined;
    }
    const name = this.#field(bytes, this.#serverName >= 0 ? this.#serverName : this.#host);
    const port = this.#port < 0 ? -1 : this.#portOf(bytes);
    const cacheKey = `${port} ${name}`;
    if (this.#servers.has(cacheKey)) return this.#servers.get(cacheKey);
    const server = this.#serverName >= 0 ? this.#byName(name, port) : this.#byHost(name, port);
    if (this.#servers.size >= MOST_PATHS) this.#servers.clear();
    this.#servers.set(cacheKey, server);
    return server;
  }

  #portOf(bytes: Uint8Array): number {
    return parseInteger(bytes, this.#scanner.starts[this.#port]!, this.#scanner.ends[this.#port]!);
  }

  /** $server_name is the first name of the server that answered. */
  #byName(name: string, port: number): ServerConf | undefined {
    const { servers } = this.#generation.conf;
    let named = servers.filter((server) => (server.names[0] ?? '') === name);
    if (named.length > 1 && port >= 0) {
      const onPort = named.filter((server) => server.listens.some((l) => l.port === port));
      if (onPort.length > 0) named = onPort;
    }
    if (named.length > 1) {
      const ofFile = named.filter((server) => this.#fileServers.includes(server));
      if (ofFile.length > 0) named = ofFile;
    }
    return named.length === 1 ? named[0] : undefined;
  }

  #byHost(host: string, port: number): ServerConf | undefined {
    const bare = host.replace(/:\d+$/, '');
    const { conf } = this.#generation;
    return selectServer(conf, bare === '' ? undefined : bare, port < 0 ? undefined : port);
  }

  #field(bytes: Uint8Array, index: number): string {
    const text = decodeText(
      bytes,
      this.#scanner.starts[index]!,
      this.#scanner.ends[index]!,
      this.#escape,
    );
    return text === '-' && this.#escape === 'default' ? '' : text;
  }
}

/** The rule set of a server that has but one for all paths: no location, or `/` alone. */
function onlyRuleSet(server: ServerConf): number {
  if (server.locations.length === 0) return server.rules.id;
  const only = server.locations.length === 1 ? server.locations[0]! : undefined;
  const isRoot = only?.kind === 'prefix' && only.pattern === '/' && only.children.length === 0;
  return isRoot ? only.rules.id : -1;
}

function endOfPath(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== 0x3f) at++;
  return at;
}

/** A word of letters and a space: what nginx takes for a method, whatever comes after it. */
function hasMethod(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end && isMethodByte(bytes[at]!)) at++;
  return at > start && at < end && bytes[at] === SPACE;
}

function isMethodByte(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || byte === 0x5f || byte === 0x2d;
}
