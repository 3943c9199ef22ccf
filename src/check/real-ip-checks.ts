/**
 * Checks of whose address $remote_addr is.
 *
 * A configuration cannot say whether a proxy stands in front. That a server listens where no
 * client from outside can come is taken as a sign.
 */
import type { ServerConf } from '../../parsers/conf/model.js';
import { parseNetwork } from '../keys/networks.js';
import { inServer } from './conf-lines.js';
import { type Finding, finding } from './finding.js';
import type { Survey } from './survey.js';

export function checkRealIp(survey: Survey): readonly Finding[] {
  const byServer = zonesByAddress(survey);
  return [
    ...survey.conf.servers.flatMap((server) => missing(survey, server, byServer.get(server) ?? [])),
    ...trustsAll(survey, byServer),
  ];
}

/** Zones keyed by the client's address, by the servers whose requests they count. */
function zonesByAddress(survey: Survey): ReadonlyMap<ServerConf, readonly string[]> {
  const byServer = new Map<ServerConf, string[]>();
  for (const zoneUse of survey.zones) {
    if (!zoneUse.traits.isByAddress) continue;
    const levels = zoneUse.uses.flatMap((use) => use.levels);
    for (const server of new Set(levels.map((level) => level.server))) {
      byServer.set(server, [...(byServer.get(server) ?? []), zoneUse.zone.name]);
    }
  }
  return byServer;
}

function missing(
  { conf }: Survey,
  server: ServerConf,
  zones: readonly string[],
): readonly Finding[] {
  // A location may have its own trusted addresses; which ones is not known here.
  const isElsewhere = conf.notes.some(({ code }) => code === 'real-ip-in-location');
  if (zones.length === 0 || server.realIp !== null || isElsewhere) return [];
  const peers = server.listens.map(({ text }) => peerOf(text));
  const known = peers.filter((peer) => peer !== null);
  const listens = server.listens.map(({ text }) => text).join(', ');
  if (known.length < peers.length) return [];
  const message =
    `zone ${quotedList(zones)} is keyed by address, but the server listens on ${listens} only, ` +
    'where its peers are proxies, and no set_real_ip_from is in force';
  return [
    finding('real-ip-missing', {
      severity: 'warning',
      where: server.where,
      message,
      fix: [
        ...[...new Set(known)].map((peer) => inServer(`set_real_ip_from ${peer};`)),
        inServer('real_ip_header X-Forwarded-For;'),
      ],
    }),
  ];
}

/** The network that peers of a listening address are in; null when that may be the internet. */
function peerOf(listen: string): string | null {
  if (listen.startsWith('unix:')) return 'unix:';
  const host = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(listen);
  const address = (host?.[1] ?? host?.[2] ?? '').toLowerCase();
  if (address === 'localhost') return '127.0.0.1';
  const own = parseNetwork(address);
  if (own === undefined) return null;
  if (own.family === 6 && address === '::1') return '::1';
  return (
    PRIVATE.find(({ network }) => {
      const range = parseNetwork(network)!;
      return range.family === own.family && range.first <= own.first && own.last <= range.last;
    })?.peers ?? null
  );
}

const PRIVATE: readonly { readonly network: string; readonly peers: string }[] = [
  { network: '127.0.0.0/8', peers: '127.0.0.1' },
  { network: '10.0.0.0/8', peers: '10.0.0.0/8' },
  { network: '172.16.0.0/12', peers: '172.16.0.0/12' },
  { network: '192.168.0.0/16', peers: '192.168.0.0/16' },
  { network: '100.64.0.0/10', peers: '100.64.0.0/10' },
  { network: 'fc00::/7', peers: 'fc00::/7' },
];

/** Servers that inherit their trusted addresses share the list, and are told of once. */
function trustsAll(
  { conf }: Survey,
  byServer: ReadonlyMap<ServerConf, readonly string[]>,
): readonly Finding[] {
  const lists = new Map<readonly string[], ServerConf[]>();
  for (const server of conf.servers) {
    const from = server.realIp?.from ?? [];
    if (from.some(isEveryone)) lists.set(from, [...(lists.get(from) ?? []), server]);
  }
  return [...lists].map(([from, servers]) => {
    const all = from.filter(isEveryone);
    const zones = [...new Set(servers.flatMap((server) => byServer.get(server) ?? []))];
    const [server] = servers;
    const consequence = zones.length === 0 ? '' : `, which is the key of zone ${quotedList(zones)}`;
    return finding('real-ip-trusts-all', {
      severity: zones.length === 0 ? 'warning' : 'error',
      where: server!.where,
      message: `set_real_ip_from ${all.join(' ')} lets any client set its address with ${server!.realIp!.header}${consequence}`,
      fix: all.map((network) => {
        return `set_real_ip_from 192.0.2.10;  # instead of set_real_ip_from ${network}; your proxy's address`;
      }),
    });
  });
}

function isEveryone(network: string): boolean {
  return parseNetwork(network)?.prefix === 0;
}

function quotedList(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
