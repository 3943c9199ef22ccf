/**
 * The value of a `geo` variable.
 *
 * Follows ngx_http_geo_cidr_variable(), ngx_http_geo_range_variable() and, for `proxy`,
 * ngx_http_get_forwarded_addr(). A source that is no IPv4 or IPv6 address (a unix socket, an
 * empty argument) is looked up as 255.255.255.255, as nginx does.
 *
 * Not here: the segments themselves (networks.ts).
 */
import { parseAddress } from './address.js';
import type { ByteRange, Line } from './byte-range.js';
import { KeyWriter } from './key-writer.js';
import { type Networks, NO_CHOICE } from './networks.js';
import type { ValueNode } from './value-node.js';

export interface GeoPlan {
  readonly source: ValueNode;
  readonly networks: Networks;
  /** One value per choice. */
  readonly values: readonly ValueNode[];
  readonly defaultValue: ValueNode;
  readonly proxies?: GeoProxies;
}

/** Addresses behind which X-Forwarded-For is believed. */
export interface GeoProxies {
  readonly networks: Networks;
  readonly isRecursive: boolean;
  readonly forwardedFor: ByteRange;
}

const NO_ADDRESS = 0xffff_ffff;

const COMMA = 0x2c;
const SPACE = 0x20;
const COLON = 0x3a;
const LEFT_BRACKET = 0x5b;
const RIGHT_BRACKET = 0x5d;

export class GeoValue implements ValueNode {
  private readonly plan: GeoPlan;
  private readonly source = new KeyWriter('raw');
  private readonly address = new Uint8Array(16);
  private addressLength = 0;
  private readonly forwarded = new Uint8Array(16);

  constructor(plan: GeoPlan) {
    this.plan = plan;
  }

  write(line: Line, out: KeyWriter): boolean {
    const { plan, source, address } = this;
    source.reset();
    if (!plan.source.write(line, source)) return false;
    this.addressLength = parseAddress(source.bytes, 0, source.length, address);
    if (plan.proxies !== undefined && this.addressLength !== 0) {
      if (!plan.proxies.forwardedFor.locate(line)) return false;
      this.followProxies(plan.proxies);
    }
    const choice =
      this.addressLength === 0
        ? plan.networks.find4(NO_ADDRESS)
        : plan.networks.find(address, this.addressLength);
    return (choice === NO_CHOICE ? plan.defaultValue : plan.values[choice]!).write(line, out);
  }

  /** Goes back through X-Forwarded-For, from its end, while the address is that of a proxy. */
  private followProxies({ networks, isRecursive, forwardedFor }: GeoProxies): void {
    const { source, start } = forwardedFor;
    let end = forwardedFor.end;
    do {
      if (networks.find(this.address, this.addressLength) === NO_CHOICE) return;
      while (end > start && isSeparator(source[end - 1]!)) end--;
      let from = end;
      while (from > start && !isSeparator(source[from - 1]!)) from--;
      const length = parseAddressAndPort(source, from, end, this.forwarded);
      if (length === 0) return;
      this.address.set(this.forwarded);
      this.addressLength = length;
      end = from;
    } while (isRecursive && end > start);
  }
}

function isSeparator(byte: number): boolean {
  return byte === COMMA || byte === SPACE;
}

/** Like ngx_parse_addr_port(); the port is of no interest. */
function parseAddressAndPort(
  text: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
): 0 | 4 | 16 {
  const plain = parseAddress(text, start, end, out);
  if (plain !== 0 || start === end) return plain;
  const isBracketed = text[start] === LEFT_BRACKET;
  const from = isBracketed ? start + 1 : start;
  let to = from;
  while (to < end && text[to] !== (isBracketed ? RIGHT_BRACKET : COLON)) to++;
  return to === end ? 0 : parseAddress(text, from, to, out);
}
