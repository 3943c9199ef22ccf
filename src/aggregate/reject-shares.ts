/**
 * Whether one address is nearly everybody: the finding `single_private_key`.
 *
 * Behind a proxy every client has the proxy's address unless real_ip is set, and one key then gets
 * nearly all rejections of its zone. A bounded set of counters keeps the keys that were rejected
 * most; a key that displaces another takes over its count as a possible error.
 */
import type { RowSink } from './rows.js';

const MOST_KEYS = 64;
const ENOUGH = 50;
const SHARE = 0.9;

interface KeyShare {
  rejects: number;
  /** So many of them may have been another key's. */
  error: number;
}

/** One zone's rejections. */
export interface ZoneShares {
  readonly zone: string;
  readonly sinceMs: number;
  untilMs: number;
  rejects: number;
  isNew: boolean;
  keys: [key: string, share: KeyShare][];
}

export class RejectShares {
  #zones = new Map<string, ZoneShares & { byKey: Map<string, KeyShare> }>();

  /** Adds a key's rejections of one minute. */
  note(zone: string, key: string, rejects: number, minuteMs: number): void {
    if (rejects === 0) return;
    let shares = this.#zones.get(zone);
    if (shares === undefined) {
      const times = { sinceMs: minuteMs, untilMs: minuteMs };
      shares = { zone, ...times, rejects: 0, isNew: true, keys: [], byKey: new Map() };
      this.#zones.set(zone, shares);
    }
    shares.rejects += rejects;
    shares.isNew = true;
    shares.untilMs = Math.max(shares.untilMs, minuteMs);
    const known = shares.byKey.get(key);
    if (known !== undefined) known.rejects += rejects;
    else if (shares.byKey.size < MOST_KEYS) shares.byKey.set(key, { rejects, error: 0 });
    else displace(shares.byKey, key, rejects);
  }

  /** Hands over what holds now, where there is news. */
  emit(sink: RowSink, instance: string): void {
    for (const shares of this.#zones.values()) {
      const { zone, sinceMs, untilMs, rejects, byKey } = shares;
      if (!shares.isNew || rejects < ENOUGH) continue;
      shares.isNew = false;
      for (const [key, share] of byKey) {
        if (share.rejects - share.error <= SHARE * rejects || !isPrivateAddress(key)) continue;
        const percent = Math.floor((100 * (share.rejects - share.error)) / rejects);
        const message =
          `${percent} % of the rejections of zone ${zone} are of ${key}, which is no client's ` +
          'address: set_real_ip_from and real_ip_header are probably missing';
        const details = JSON.stringify({ zone, key, rejects });
        const subject = `${zone} ${key}`;
        sink.row('findings', [
          instance,
          'single_private_key',
          subject,
          message,
          sinceMs,
          untilMs,
          details,
        ]);
      }
    }
  }

  snapshot(): ZoneShares[] {
    return Array.from(this.#zones.values(), ({ byKey, ...shares }) => ({
      ...shares,
      keys: Array.from(byKey, ([key, share]): [string, KeyShare] => [key, { ...share }]),
    }));
  }

  restore(zones: readonly ZoneShares[]): void {
    this.#zones = new Map();
    for (const shares of zones) {
      const byKey = new Map(shares.keys.map(([key, share]) => [key, { ...share }]));
      this.#zones.set(shares.zone, { ...shares, keys: [], byKey });
    }
  }
}

function displace(byKey: Map<string, KeyShare>, key: string, rejects: number): void {
  let least: string | undefined;
  let fewest = Infinity;
  for (const [other, share] of byKey) {
    if (share.rejects >= fewest) continue;
    fewest = share.rejects;
    least = other;
  }
  if (least === undefined) return;
  byKey.delete(least);
  byKey.set(key, { rejects: fewest + rejects, error: fewest });
}

const PRIVATE =
  /^(?:127|10|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\.[\d.]+$|^::1$|^f[cd][0-9a-f]{2}:[0-9a-f:.]+$|^fe[89ab][0-9a-f]:[0-9a-f:.]+$|^unix:$/;

/** Loopback, private and link-local addresses, and nginx's word for a UNIX socket. */
export function isPrivateAddress(text: string): boolean {
  return PRIVATE.test(text);
}
