/**
 * Variables that are had from the fields of a log_format directly: logged themselves, under
 * another name, or as a part of another field.
 *
 * The ways to a variable are tried in the order in which they tell what the limiter saw. So the
 * request line comes before $uri, $args and $request_method, which error_page, index and try_files
 * change after the limiter has decided. Where a `rewrite` changes $uri and $args before that, it
 * is the other way round.
 *
 * Not here: maps and geos (variables.ts).
 */
import { type ByteRange, ConstantRange, type Escape, FirstOf, LoggedField } from './byte-range.js';
import { Cookie, HostName } from './header-parts.js';
import {
  Argument,
  ArgsOfUri,
  IsArgs,
  MethodOfRequest,
  NormalizedUri,
  RequestLinePart,
} from './request-parts.js';

export interface LogContext {
  /** Variables of the log_format, without the dollar, in the order of the line's fields. */
  readonly variables: readonly string[];
  readonly escape: Escape;
  /** What is known of unlogged variables: $server_name of the only server, $scheme, … */
  readonly constants: Readonly<Record<string, string>>;
  /** `merge_slashes` of the server; on by default. */
  readonly mergeSlashes?: boolean;
  /** Whether a `rewrite` may change $uri or $args before the limiter; false by default. */
  readonly isRewritten?: boolean;
}

type Ways = readonly (ByteRange | undefined)[];

export class LoggedVariables {
  private readonly names: readonly string[];
  private readonly escape: Escape;
  private readonly constants: ReadonlyMap<string, string>;
  private readonly mergeSlashes: boolean;
  private readonly isRewritten: boolean;

  constructor(context: LogContext) {
    this.names = context.variables.map((name) => name.toLowerCase());
    this.escape = context.escape;
    this.constants = new Map(
      Object.entries(context.constants).map(([name, value]) => [name.toLowerCase(), value]),
    );
    this.mergeSlashes = context.mergeSlashes !== false;
    this.isRewritten = context.isRewritten === true;
  }

  /** Where a variable (name in lower case) is found; undefined when the log does not tell it. */
  find(name: string): ByteRange | undefined {
    return firstOf(this.waysTo(name));
  }

  private waysTo(name: string): Ways {
    const field = this.field(name);
    const request = this.field('request');
    if (name.startsWith('arg_')) return this.waysToArgument(name.slice('arg_'.length), field);
    if (name.startsWith('cookie_')) {
      const header = this.field('http_cookie');
      return [field, header && new Cookie(header, name.slice('cookie_'.length))];
    }
    switch (name) {
      case 'request_method':
        return [request && new MethodOfRequest(request), field];
      case 'server_protocol':
        return [field, request && new RequestLinePart(request, 'protocol')];
      case 'request_uri':
        return [this.requestUri()];
      case 'args':
      case 'query_string':
        return this.waysToArgs();
      case 'is_args': {
        const [sent, args] = [this.argsAsSent(), this.loggedArgs()].map((a) => a && new IsArgs(a));
        return this.isRewritten ? [field, args, sent] : [sent, args, field];
      }
      case 'uri':
      case 'document_uri':
        return this.waysToUri();
      case 'host':
        return [field, this.hostName()];
      default:
        return [field, this.constant(name)];
    }
  }

  private waysToArgument(name: string, field: ByteRange | undefined): Ways {
    const [sent, args] = [this.argsAsSent(), this.loggedArgs()];
    const ofSent = sent && new Argument(sent, name);
    const ofArgs = args && new Argument(args, name);
    return this.isRewritten ? [field, ofArgs, ofSent] : [ofSent, ofArgs, field];
  }

  private waysToArgs(): Ways {
    const [sent, args] = [this.argsAsSent(), this.loggedArgs()];
    return this.isRewritten ? [args, sent] : [sent, args];
  }

  private waysToUri(): Ways {
    const requestUri = this.requestUri();
    const sent = requestUri && new NormalizedUri(requestUri, this.mergeSlashes);
    const asLogged = this.field('uri') ?? this.field('document_uri');
    return this.isRewritten ? [asLogged, sent] : [sent, asLogged];
  }

  private requestUri(): ByteRange | undefined {
    const request = this.field('request');
    return firstOf([this.field('request_uri'), request && new RequestLinePart(request, 'uri')]);
  }

  private argsAsSent(): ByteRange | undefined {
    const uri = this.requestUri();
    return uri && new ArgsOfUri(uri);
  }

  private loggedArgs(): ByteRange | undefined {
    return this.field('args') ?? this.field('query_string');
  }

  private hostName(): ByteRange | undefined {
    const header = this.field('http_host');
    const request = this.field('request');
    const authority = request && new RequestLinePart(request, 'authority');
    return header && new HostName(authority, header, this.find('server_name'));
  }

  /** The field that a variable is logged in itself. */
  field(name: string): ByteRange | undefined {
    const index = this.names.indexOf(name);
    return index === -1 ? undefined : new LoggedField(index, this.escape);
  }

  private constant(name: string): ByteRange | undefined {
    const value = this.constants.get(name);
    return value === undefined ? undefined : new ConstantRange(value);
  }
}

function firstOf(ways: readonly (ByteRange | undefined)[]): ByteRange | undefined {
  const present = ways.filter((way) => way !== undefined);
  return present.length < 2 ? present[0] : new FirstOf(present);
}
