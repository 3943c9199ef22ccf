/**
 * Schedules of requests from a seed: steady arrivals, bursts, conversations on one connection.
 *
 * Times are milliseconds from the start.
 */
import type { LiveRequest } from './live-traffic.js';

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A number in [0, 1). */
  roll(): number {
    this.#state = (Math.imul(this.#state, 1_103_515_245) + 12_345) >>> 0;
    return (this.#state >>> 8) / (1 << 24);
  }

  below(n: number): number {
    return Math.floor(this.roll() * n);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** Few small numbers often, large ones seldom. */
  zipf(n: number): number {
    return Math.min(n - 1, Math.floor(n ** this.roll()) - 1);
  }
}

type Make = (dice: Dice, index: number) => Omit<LiveRequest, 'atMs'>;

/** Independent arrivals. */
export function steady(dice: Dice, perSecond: number, lastsMs: number, make: Make): LiveRequest[] {
  const requests: LiveRequest[] = [];
  for (let at = 0; ;) {
    at += (-Math.log(1 - dice.roll()) * 1000) / perSecond;
    if (at >= lastsMs) return requests;
    requests.push({ atMs: at, ...make(dice, requests.length) });
  }
}

/** `size` requests within `spreadMs`, every `everyMs`. */
export function bursts(
  dice: Dice,
  options: { everyMs: number; size: number; spreadMs: number; lastsMs: number },
  make: Make,
): LiveRequest[] {
  const requests: LiveRequest[] = [];
  for (let at = 0; at < options.lastsMs; at += options.everyMs * (0.5 + dice.roll())) {
    const size = 1 + dice.below(options.size);
    for (let i = 0; i < size; i++) {
      const atMs = at + dice.roll() * options.spreadMs;
      requests.push({ atMs, ...make(dice, requests.length) });
    }
  }
  return requests.sort((a, b) => a.atMs - b.atMs);
}

/** `count` connections, each with requests `gapMs` apart on average. */
export function conversations(
  dice: Dice,
  options: { count: number; gapMs: number; lastsMs: number },
  make: Make,
): LiveRequest[] {
  const requests: LiveRequest[] = [];
  for (let i = 0; i < options.count; i++) {
    const keepAlive = `c${i}`;
    for (let at = dice.roll() * options.gapMs; at < options.lastsMs;) {
      requests.push({ atMs: at, keepAlive, ...make(dice, i) });
      at += -Math.log(1 - dice.roll()) * options.gapMs;
    }
  }
  return requests.sort((a, b) => a.atMs - b.atMs);
}
