/**
 * Which location a request meets.
 *
 * normalizeUri() follows ngx_http_parse_request_line() and ngx_http_parse_complex_uri(): what
 * nginx compares with locations is not what the client sent. findRules() follows
 * ngx_http_core_find_location(). URIs are latin1 strings, one character per byte.
 *
 * Not here: redirects inside of nginx (rewrite, try_files, error_page, index), and the redirect
 * to a directory's trailing slash, which is answered before any limit.
 */
import type { LocationNode, RuleSet, ServerConf } from './model.js';
import { compilePcre } from './pcre.js';

/** Nothing in such a path needs a second look: no `%`, `#`, `//` and no dot behind a slash. */
const PLAIN_PATH = /^\/(?:(?!\/|\.)[^%#\0-\x20\x7f/]*\/)*(?![/.])[^%#\0-\x20\x7f/]*$/;

/**
 * The URI that nginx matches against locations.
 *
 * @param rawPath the request target up to and excluding `?`, latin1, as in the request line: a
 *   path, or `http://host/path`
 * @param mergeSlashes the server's merge_slashes
 * @returns undefined where nginx answers 400
 */
export function normalizeUri(rawPath: string, mergeSlashes: boolean): string | undefined {
  const path = rawPath.startsWith('/') ? rawPath : pathOfAbsoluteForm(rawPath);
  if (path === undefined || PLAIN_PATH.test(path)) return path;
  if (/[\0-\x20\x7f]/.test(path)) return undefined;
  return new ComplexUri(path, mergeSlashes).run();
}

/** `http://host`, `http://host:80` and `http://host/path`; an empty path is `/`. */
function pathOfAbsoluteForm(target: string): string | undefined {
  const match =
    /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:\[[^\]/\s]*\]|[A-Za-z0-9.-]+)(?::[0-9]*)?(\/.*)?$/s.exec(
      target,
    );
  return match === null ? undefined : (match[1] ?? '/');
}

type State = 'usual' | 'slash' | 'dot' | 'dot-dot';

/** The state machine of ngx_http_parse_complex_uri(), with its names for the states. */
class ComplexUri {
  private readonly path: string;
  private readonly mergeSlashes: boolean;
  private state: State = 'usual';
  private out = '';

  constructor(path: string, mergeSlashes: boolean) {
    this.path = path;
    this.mergeSlashes = mergeSlashes;
  }

  run(): string | undefined {
    for (let i = 0; i < this.path.length; i++) {
      let ch = this.path.charAt(i);
      if (ch === '#') break;
      if (ch === '%') {
        const hex = this.path.slice(i + 1, i + 3);
        if (!/^[0-9a-fA-F]{2}$/.test(hex) || hex === '00') return undefined;
        ch = String.fromCharCode(Number.parseInt(hex, 16));
        i += 2;
        // An encoded slash or dot counts as one, while an encoded `#` or `?` ends nothing.
      }
      if (!this.step(ch)) return undefined;
    }
    if (this.state === 'dot') this.out = this.out.slice(0, -1);
    if (this.state === 'dot-dot' && !this.up()) return undefined;
    return this.out;
  }

  /** @returns false where the path climbs above its root */
  private step(ch: string): boolean {
    const state = this.state;
    if (ch === '/') {
      if (state === 'dot') this.out = this.out.slice(0, -1);
      else if (state === 'dot-dot') {
        if (!this.up()) return false;
      } else if (state === 'usual' || !this.mergeSlashes) this.out += ch;
      this.state = 'slash';
      return true;
    }
    this.out += ch;
    if (ch === '.' && state === 'slash') this.state = 'dot';
    else if (ch === '.' && state === 'dot') this.state = 'dot-dot';
    else this.state = 'usual';
    return true;
  }

  /** Takes off `/..` and the segment before it. */
  private up(): boolean {
    const slash = this.out.slice(0, -3).lastIndexOf('/');
    this.out = this.out.slice(0, slash + 1);
    return slash !== -1;
  }
}

/** One list of locations, sorted for the search as nginx sorts it. */
interface LocationIndex {
  readonly exact: ReadonlyMap<string, LocationNode>;
  /** Longest first. */
  readonly prefixes: readonly LocationNode[];
  /** In order of the configuration; those that cannot be evaluated are left out. */
  readonly regexes: readonly { readonly regex: RegExp; readonly node: LocationNode }[];
}

const indexes = new WeakMap<readonly LocationNode[], LocationIndex>();

function indexOf(locations: readonly LocationNode[]): LocationIndex {
  const known = indexes.get(locations);
  if (known !== undefined) return known;
  const index: LocationIndex = {
    exact: new Map(
      locations.filter((node) => node.kind === 'exact').map((node) => [node.pattern, node]),
    ),
    prefixes: locations
      .filter((node) => node.kind === 'prefix' || node.kind === 'prefix-no-regex')
      .sort((a, b) => b.pattern.length - a.pattern.length),
    regexes: locations.flatMap((node) => {
      if (node.kind !== 'regex' && node.kind !== 'regex-nocase') return [];
      const regex = compilePcre(node.pattern, { nocase: node.kind === 'regex-nocase' });
      return regex instanceof RegExp ? [{ regex, node }] : [];
    }),
  };
  indexes.set(locations, index);
  return index;
}

interface Found {
  readonly node: LocationNode;
  /** An exact location or a regular expression: no other is looked at. */
  readonly isFinal: boolean;
}

/**
 * The rules in force for a URI.
 *
 * @param uri as normalizeUri() gives it
 */
export function findRules(server: ServerConf, uri: string): RuleSet {
  return findLocation(server.locations, uri)?.node.rules ?? server.rules;
}

function findLocation(locations: readonly LocationNode[], uri: string): Found | undefined {
  if (locations.length === 0) return undefined;
  const index = indexOf(locations);
  const exact = index.exact.get(uri);
  if (exact !== undefined) return { node: exact, isFinal: true };
  const prefix = index.prefixes.find((node) => uri.startsWith(node.pattern));
  let found: Found | undefined;
  if (prefix !== undefined) {
    const nested = findLocation(prefix.children, uri);
    found = nested ?? { node: prefix, isFinal: false };
  }
  // `^~` keeps only the expressions of its own level from being tried.
  if (found?.isFinal === true || prefix?.kind === 'prefix-no-regex') return found;
  for (const { regex, node } of index.regexes) {
    if (!regex.test(uri)) continue;
    const nested = findLocation(node.children, uri);
    return { node: nested?.node ?? node, isFinal: true };
  }
  return found;
}
