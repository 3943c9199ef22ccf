/**
 * One zone while logs are replayed: nginx's memory of it, and how surely each key's excess is known.
 *
 * The true decision time of a request is known to about a millisecond only, so a key's excess is an
 * interval. Carrying the excess and the time apart would let the interval grow with every request.
 * Here the bounds are those of `excess` at the *estimated* last time, which is the same as bounding
 * V = excess + rate·last: a charge adds exactly one request to V whatever the time, so the width
 * stays what the clock alone explains.
 *
 * Memory follows ngx_http_limit_req_lookup() and ngx_http_limit_req_expire() through ZoneMemory.
 * Units: thousandths of a request, milliseconds.
 *
 * Not here: what a request's excess is and what follows from it (key-sweep.ts).
 */
import {
  decayedExcess,
  excessAfter,
  lastAfter,
  ONE_REQUEST_MILLI_REQ,
} from '../limit-req/arithmetic.js';
import { ZoneMemory } from '../limit-req/zone-memory.js';
import type { KeyTable } from '../keys/key-table.js';

/** The last evicted keys, remembered in case nginx evicted in a slightly other order. */
const GHOSTS = 8;
/** As many of the oldest nodes may already be gone, for the same reason. */
const NEAR_TAIL = 8;
/** A log that says a node was made although the model found no page is believed; this bounds the search. */
const MOST_FORCED = 64;
/** Stands for a key that was idle for ever. */
const IDLE_MILLI_REQ = -1e12;

/** Early charges are forgotten in one go when there are this many. */
const MANY_EARLY = 1024;

/** A request that was charged at its estimate, and may as well have been decided later. */
export interface EarlyCharge {
  readonly hiMs: number;
  readonly pid: number;
  readonly connection: number;
}

export interface ZoneReplayOptions {
  readonly name: string;
  readonly sizeBytes: number;
  readonly rateMilliRps: number;
}

const NO_CHARGES: readonly EarlyCharge[] = [];

/** A key's state as nginx would hold it had the zone no end. */
export interface Shadow {
  excessMilliReq: number;
  lastMs: number;
}

export interface Ghost {
  keyId: number;
  excessMilliReq: number;
  lastMs: number;
  lowMilliReq: number;
  highMilliReq: number;
}

/** Sums since the start (or since takeCounts()). */
export interface ZoneCounts {
  evictions: number;
  evictionsInDebt: number;
  admittedByEviction: number;
  allocationFailures: number;
  nodesCreated: number;
}

export class ZoneReplay {
  readonly name: string;
  readonly sizeBytes: number;
  /** Holds the keys' bytes; what a node, a shadow or a waiting request needs is retained. */
  keys: KeyTable;
  memory: ZoneMemory;
  readonly counts: ZoneCounts = {
    evictions: 0,
    evictionsInDebt: 0,
    admittedByEviction: 0,
    allocationFailures: 0,
    nodesCreated: 0,
  };
  /** Set by locate(): the key had no node. */
  isFresh = false;
  /** Set by locate(): the node is so old that nginx may have evicted it already. */
  maybeEvicted = false;
  /** Set by locate(): the model found no page for the node at first. */
  hadNoPage = false;
  /**
   * Set by locate() and failToLocate(): among the nodes next to go are some whose room the new node
   * cannot use. Whether it finds any hangs on their order then, which is not certain.
   */
  isCrowded = false;
  /** Set with it: the new node took the last room, or an eviction's, or found none. */
  isPageUnsure = false;
  /** Set by locate(): the node is new, but nginx may still have had the old one. */
  ghost: Ghost | null = null;
  /** The log began here, and nginx was running already: keys may be in debt from before. */
  warmSinceMs = -Infinity;
  /** Until then, that is: the largest burst has drained by then. */
  warmUntilMs = -Infinity;
  warmHighMilliReq = 0;

  /** Slots of requests whose decision may have come already, though they are judged later; by key. */
  readonly openSlots = new Map<number, number[]>();
  /** Requests judged already whose decision may come yet; by key. */
  readonly earlyCharges = new Map<number, EarlyCharge[]>();

  readonly #shadows = new Map<number, Shadow>();
  readonly #ghosts: Ghost[] = [];

  constructor(options: ZoneReplayOptions, keys: KeyTable, memory?: ZoneMemory) {
    this.name = options.name;
    this.sizeBytes = options.sizeBytes;
    this.keys = keys;
    this.memory =
      memory ??
      new ZoneMemory({
        sizeBytes: options.sizeBytes,
        nameLength: Buffer.byteLength(options.name),
        rateMilliRps: options.rateMilliRps,
        keys,
      });
  }

  /** Bounds by node, of the excess at memory.lastMs[node]. */
  get low(): Float64Array {
    return this.memory.low;
  }

  get high(): Float64Array {
    return this.memory.high;
  }

  /** By node: the rate under which the bounds were written; a reload may change it. */
  get rate(): Float64Array {
    return this.memory.boundsRate;
  }

  /**
   * What a lookup does to the memory: moves the key's node to the head, or makes one.
   *
   * @param mustExist the log shows that nginx had or made a node, whatever the model says
   * @returns the node, or -1 when there is no page for one
   */
  locate(keyId: number, keyLengthBytes: number, nowMs: number, mustExist: boolean): number {
    const memory = this.memory;
    this.ghost = null;
    this.maybeEvicted = false;
    this.hadNoPage = false;
    this.isCrowded = false;
    this.isPageUnsure = false;
    let node = memory.find(keyId);
    if (node >= 0) {
      this.isFresh = false;
      if (this.counts.evictions > 0) this.maybeEvicted = this.isNearEviction(node, nowMs);
      memory.touch(node);
      return node;
    }
    this.isFresh = true;
    if (this.counts.evictions > 0) this.ghost = this.#findGhost(keyId);
    const { allocationFailures } = this.counts;
    node = this.#tryCreate(keyId, keyLengthBytes, nowMs);
    this.hadNoPage = node < 0;
    for (let i = 0; node < 0 && mustExist && i < MOST_FORCED; i++) {
      node = this.#create(keyId, keyLengthBytes, nowMs);
    }
    // What only the model lacked a page for was no failure of nginx's.
    if (mustExist && node >= 0) this.counts.allocationFailures = allocationFailures;
    return node;
  }

  /** Whether the key was forgotten in debt, and is followed on as if it were not. */
  hasShadow(keyId: number): boolean {
    return this.#shadows.size > 0 && this.#shadows.has(keyId);
  }

  /** Whether nginx may have evicted the node already, and that would make a difference. */
  isNearEviction(node: number, nowMs: number): boolean {
    return this.#matters(node, nowMs) && this.#isNearTail(node);
  }

  /**
   * The log shows that no page was found for this key's node. The attempt costs nginx its oldest
   * node all the same; a node that the model has, or could make, goes.
   *
   * @returns whether the model found no page either
   */
  failToLocate(keyId: number, keyLengthBytes: number, nowMs: number): boolean {
    const { memory } = this;
    let node = memory.find(keyId);
    const isKnown = node >= 0;
    if (isKnown) this.#drop(node, keyId);
    node = this.#tryCreate(keyId, keyLengthBytes, nowMs);
    // nginx may have evicted it: that it is there says nothing of the room that there was.
    if (isKnown) this.isPageUnsure = false;
    if (node < 0) return !isKnown;
    this.unlocate(node, keyId);
    return false;
  }

  /** The same for a key that locate() has just made a node for. */
  unlocate(node: number, keyId: number): void {
    const { memory, counts } = this;
    const hasEvicted = memory.allocFailures > 0;
    this.#drop(node, keyId);
    counts.nodesCreated--;
    counts.allocationFailures++;
    const oldest = memory.tail();
    if (!hasEvicted && oldest >= 0) this.#drop(oldest, memory.keyOf(oldest));
  }

  /** nginx started anew (or was replaced): its shared memory is empty. */
  reset(): void {
    const { memory, keys } = this;
    for (let node = memory.tail(); node >= 0; node = memory.tail()) {
      this.#drop(node, memory.keyOf(node));
    }
    for (const keyId of this.#shadows.keys()) keys.release(keyId);
    for (const ghost of this.#ghosts) keys.release(ghost.keyId);
    this.#shadows.clear();
    this.#ghosts.length = 0;
    this.warmUntilMs = -Infinity;
    this.memory = new ZoneMemory({
      sizeBytes: this.sizeBytes,
      nameLength: memory.nameLength,
      rateMilliRps: memory.rateMilliRps,
      keys,
    });
  }

  shadowEntries(): [number, Shadow][] {
    return [...this.#shadows];
  }

  ghostEntries(): Ghost[] {
    return [...this.#ghosts];
  }

  /** Takes over what another replay of this zone remembered; its keys are retained already. */
  adopt(
    shadows: readonly (readonly [number, Shadow])[],
    ghosts: readonly Ghost[],
    evictions: number,
  ): void {
    for (const [keyId, shadow] of shadows) this.#shadows.set(keyId, { ...shadow });
    this.#ghosts.push(...ghosts);
    this.counts.evictions = evictions;
    this.warmUntilMs = -Infinity;
  }

  /** @param nowMs charges that are surely past by then are forgotten */
  noteEarly(keyId: number, charge: EarlyCharge, nowMs: number): void {
    const { earlyCharges } = this;
    if (earlyCharges.size >= MANY_EARLY) {
      for (const key of earlyCharges.keys()) this.earlyOf(key, nowMs);
    }
    const list = earlyCharges.get(keyId);
    if (list === undefined) earlyCharges.set(keyId, [charge]);
    else if (list.length < MANY_EARLY) list.push(charge);
  }

  /** The early charges of a key that may come after this moment. */
  earlyOf(keyId: number, nowMs: number): readonly EarlyCharge[] {
    const list = this.earlyCharges.get(keyId);
    if (list === undefined) return NO_CHARGES;
    const left = list.filter(({ hiMs }) => hiMs >= nowMs);
    if (left.length === 0) this.earlyCharges.delete(keyId);
    else if (left.length < list.length) this.earlyCharges.set(keyId, left);
    return left;
  }

  #drop(node: number, keyId: number): void {
    this.memory.remove(node);
    this.keys.release(keyId);
  }

  /**
   * What a zone without end would have said, for a key that this one forgot in debt.
   *
   * @param isAccepted whether nginx let the request pass, which charges the shadow as well
   * @returns true when the request passed only because its debt was forgotten
   */
  chargeShadow(
    keyId: number,
    rateMilliRps: number,
    burstMilliReq: number,
    nowMs: number,
    isAccepted: boolean,
  ): boolean {
    if (this.#shadows.size === 0) return false;
    const shadow = this.#shadows.get(keyId);
    if (shadow === undefined) return false;
    const excess = excessAfter(shadow.excessMilliReq, shadow.lastMs, rateMilliRps, nowMs);
    if (excess > burstMilliReq) {
      if (isAccepted) this.counts.admittedByEviction++;
      return isAccepted;
    }
    // A key's next request finds it as a new one would only once a whole request more has drained.
    if (excess === 0) {
      this.#shadows.delete(keyId);
      this.keys.release(keyId);
    } else if (isAccepted) {
      shadow.lastMs = lastAfter(shadow.lastMs, nowMs);
      shadow.excessMilliReq = excess;
    }
    return false;
  }

  /** The same as #create(), and whether it may have ended otherwise in nginx. */
  #tryCreate(keyId: number, keyLengthBytes: number, nowMs: number): number {
    const { memory, counts } = this;
    const isFull = counts.evictions > 0 || memory.pagesFree === 0;
    this.isCrowded = isFull && memory.hasOtherSizeAtTail(keyLengthBytes, NEAR_TAIL);
    const node = this.#create(keyId, keyLengthBytes, nowMs);
    this.isPageUnsure =
      this.isCrowded && (memory.allocFailures > 0 || !memory.hasRoom(keyLengthBytes));
    return node;
  }

  #create(keyId: number, keyLengthBytes: number, nowMs: number): number {
    const memory = this.memory;
    const oldestBefore = this.#ghostOf(memory.tail(), nowMs);
    const node = memory.create(keyId, keyLengthBytes, nowMs);
    for (let i = 0; i < memory.evictedCount; i++) this.#noteEvicted(i, nowMs, oldestBefore);
    if (node < 0) {
      this.counts.allocationFailures++;
      return -1;
    }
    this.keys.retain(keyId);
    this.counts.nodesCreated++;
    // nginx gives a node of a later-accounted lookup last = 0, which decays to no excess at all;
    // the same stands here for every new node until it is charged.
    memory.lastMs[node] = 0;
    if (nowMs < this.warmUntilMs) {
      memory.lastMs[node] = this.warmSinceMs;
      memory.excessMilliReq[node] = IDLE_MILLI_REQ;
      this.low[node] = IDLE_MILLI_REQ;
      this.high[node] = this.warmHighMilliReq;
    }
    return node;
  }

  #noteEvicted(i: number, nowMs: number, oldestBefore: Ghost | null): void {
    const { memory, counts } = this;
    const keyId = memory.evictedKeys[i]!;
    counts.evictions += memory.evictedForced[i]!;
    if (memory.evictedExcessMilliReq[i]! > 0) counts.evictionsInDebt++;
    if (memory.evictedExcessMilliReq[i]! > -ONE_REQUEST_MILLI_REQ) {
      if (oldestBefore !== null && oldestBefore.keyId === keyId && !this.#shadows.has(keyId)) {
        this.#shadows.set(keyId, {
          excessMilliReq: oldestBefore.excessMilliReq,
          lastMs: oldestBefore.lastMs,
        });
        this.keys.retain(keyId);
        this.#dropPaidShadows(nowMs);
      }
    }
    if (oldestBefore !== null && oldestBefore.keyId === keyId) {
      this.keys.retain(keyId);
      this.#ghosts.push(oldestBefore);
      if (this.#ghosts.length > GHOSTS) this.keys.release(this.#ghosts.shift()!.keyId);
    }
    this.keys.release(keyId);
  }

  /** Shadows end with their debt; without this, keys that never return would stay. */
  #dropPaidShadows(nowMs: number): void {
    if ((this.#shadows.size & 1023) !== 0) return;
    for (const [keyId, shadow] of this.#shadows) {
      const rate = this.memory.rateMilliRps;
      if (excessAfter(shadow.excessMilliReq, shadow.lastMs, rate, nowMs) > 0) continue;
      this.#shadows.delete(keyId);
      this.keys.release(keyId);
    }
  }

  /** The oldest node's state, where it would matter that it is forgotten. */
  #ghostOf(node: number, nowMs: number): Ghost | null {
    const { memory } = this;
    // Without an eviction so far and with pages to spare none will come now.
    if (node < 0 || (this.counts.evictions === 0 && memory.pagesFree > 0)) return null;
    if (!this.#matters(node, nowMs)) return null;
    return {
      keyId: this.memory.keyOf(node),
      excessMilliReq: this.memory.excessMilliReq[node]!,
      lastMs: this.memory.lastMs[node]!,
      lowMilliReq: this.low[node]!,
      highMilliReq: this.high[node]!,
    };
  }

  #findGhost(keyId: number): Ghost | null {
    for (let i = this.#ghosts.length - 1; i >= 0; i--) {
      if (this.#ghosts[i]!.keyId === keyId) return this.#ghosts[i]!;
    }
    return null;
  }

  /** Whether the key would be judged otherwise as a new one: not once all it owed has drained. */
  #matters(node: number, nowMs: number): boolean {
    const { memory } = this;
    const stored = memory.excessMilliReq[node]!;
    const left = decayedExcess(stored, memory.lastMs[node]!, memory.rateMilliRps, nowMs);
    return left > -2 * ONE_REQUEST_MILLI_REQ;
  }

  #isNearTail(node: number): boolean {
    let older = this.memory.tail();
    for (let i = 0; i < NEAR_TAIL && older >= 0; i++) {
      if (older === node) return true;
      older = this.memory.nextNewer(older);
    }
    return false;
  }
}
