/**
 * The inside of `geo`, as ngx_http_geo() reads it.
 *
 * Networks are keyed by their canonical form: a second line for one takes the first one's place,
 * and `delete` takes it off. Ranges are kept by address-ranges.ts.
 *
 * Not here: looking an address up, and binary range bases.
 */
import { AddressRanges } from './address-ranges.js';
import { addNote, refuse, type Draft } from './level.js';
import type { Directive } from './lexer.js';
import type { GeoBlock } from './model.js';
import { canonicalNetwork, parseIpv4 } from './network.js';
import { definedVariable } from './variables.js';

type GeoEntry = GeoBlock['entries'][number];

export class GeoReader {
  private readonly draft: Draft;
  private readonly head: Directive;
  private readonly source: string;
  private readonly variable: string;
  private readonly networks = new Map<string, GeoEntry>();
  private ranges: AddressRanges | undefined;
  private readonly proxies: string[] = [];
  private proxyRecursive = false;
  private isVolatile = false;
  private defaultValue: string | undefined;

  /** @param head `geo [$address] $variable {` */
  constructor(draft: Draft, head: Directive) {
    const names = head.words.slice(1).map((word) => definedVariable(head, word));
    this.draft = draft;
    this.head = head;
    this.variable = names.at(-1)!;
    this.source = names.length === 2 ? names[0]! : 'remote_addr';
  }

  /** One line of the block; `include` has been followed already. */
  read(line: Directive): void {
    const [name = '', value] = line.words;
    if (value === undefined && name === 'ranges') return this.startRanges(line);
    if (value === undefined && name === 'proxy_recursive') this.proxyRecursive = true;
    else if (value === undefined && name === 'volatile') this.isVolatile = true;
    else if (value === undefined || line.words.length !== 2) {
      refuse(line, 'invalid number of the geo parameters');
    } else if (name === 'proxy') {
      networkOf(line, value);
      this.proxies.push(value);
    } else if (this.ranges !== undefined) this.readRange(line, name, value, this.ranges);
    else this.readNetwork(line, name, value);
  }

  private startRanges(line: Directive): void {
    if (this.networks.size > 0 || this.defaultValue !== undefined) {
      refuse(line, 'the "ranges" directive must be the first directive inside "geo" block');
    }
    this.ranges ??= new AddressRanges();
  }

  private readNetwork(line: Directive, name: string, value: string): void {
    if (name === 'default') {
      // `default` and the network of all addresses are one node of nginx's tree.
      this.networks.delete('ipv4 0/0');
      this.networks.delete('ipv6 0/0');
      this.defaultValue = value;
      return;
    }
    const network = name === 'delete' ? value : name;
    const key = networkOf(line, network);
    const wasKnown = this.networks.delete(key);
    if (name !== 'delete') this.networks.set(key, { network, value, where: line.where });
    else if (!wasKnown) this.warn(line, `no network "${network}" to delete`);
  }

  private readRange(line: Directive, name: string, value: string, ranges: AddressRanges): void {
    if (name === 'default') {
      this.defaultValue = value;
      return;
    }
    const network = name === 'delete' ? value : name;
    const dash = network.indexOf('-');
    const first = parseIpv4(network.slice(0, Math.max(dash, 0)));
    const last = parseIpv4(network.slice(dash + 1));
    if (first === undefined || last === undefined || first > last) {
      refuse(line, `invalid range "${network}"`);
    }
    if (name === 'delete') {
      if (!ranges.delete(first, last)) this.warn(line, `no address range "${network}" to delete`);
      return;
    }
    const clash = ranges.add(first, last, { network, value, where: line.where });
    if (clash !== undefined) refuse(line, `range "${network}" overlaps "${clash}"`);
  }

  private warn(line: Directive, message: string): void {
    addNote(this.draft, 'geo-delete-without-effect', message, line.where);
  }

  /** Puts the finished block into the draft; a later geo of the same variable takes its place. */
  finish(): void {
    this.draft.maps.delete(this.variable);
    this.draft.geos.set(this.variable, {
      source: this.source,
      variable: this.variable,
      ranges: this.ranges !== undefined,
      entries: this.ranges?.entries() ?? [...this.networks.values()],
      defaultValue: this.defaultValue ?? '',
      proxies: this.proxies,
      ...(this.proxyRecursive ? { proxyRecursive: true } : {}),
      ...(this.isVolatile ? { isVolatile: true } : {}),
      where: this.head.where,
    });
  }
}

function networkOf(line: Directive, network: string): string {
  return canonicalNetwork(network) ?? refuse(line, `invalid network "${network}"`);
}
