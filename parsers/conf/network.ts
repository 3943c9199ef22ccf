/**
 * Addresses and networks of the configuration, as ngx_inet_addr() and ngx_ptocidr() read them.
 */

/** The 32 bits of a dotted address: four decimal parts, each up to 255, nothing else. */
export function parseIpv4(text: string): number | undefined {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  if (parts.some((part) => part > 255)) return undefined;
  return parts.reduce((bits, part) => bits * 256 + part, 0);
}

/** Dotted again. */
export function formatIpv4(bits: number): string {
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join('.');
}

function parseIpv6(text: string): bigint | undefined {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const ipv4 = dotted === null ? undefined : parseIpv4(dotted[2]!);
  if (dotted !== null && ipv4 === undefined) return undefined;
  const groups =
    dotted === null
      ? text
      : `${dotted[1]}${(ipv4! >>> 16).toString(16)}:${(ipv4! & 0xffff).toString(16)}`;
  const halves = groups.split('::');
  if (halves.length > 2) return undefined;
  const [left = [], right = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  if ([...left, ...right].some((group) => !/^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const all = [...left, ...Array<string>(missing).fill('0'), ...right];
  return BigInt(`0x${all.map((group) => group.padStart(4, '0')).join('')}`);
}

/**
 * A network in one spelling, so that two spellings of it compare equal: bits beyond the prefix
 * are cut off.
 *
 * @returns undefined for what nginx calls an invalid network
 */
export function canonicalNetwork(text: string): string | undefined {
  const slash = text.indexOf('/');
  const address = slash === -1 ? text : text.slice(0, slash);
  const ipv4 = parseIpv4(address);
  const bits = ipv4 === undefined ? parseIpv6(address) : BigInt(ipv4);
  if (bits === undefined) return undefined;
  const width = ipv4 === undefined ? 128 : 32;
  const prefixText = slash === -1 ? String(width) : text.slice(slash + 1);
  const prefix = /^\d{1,9}$/.test(prefixText) ? Number(prefixText) : Number.NaN;
  if (!(prefix <= width)) return undefined;
  const shift = BigInt(width - prefix);
  return `${width === 32 ? 'ipv4' : 'ipv6'} ${((bits >> shift) << shift).toString(16)}/${prefix}`;
}
