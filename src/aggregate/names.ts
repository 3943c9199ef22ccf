/**
 * Names to small integers: what buckets are counted by.
 *
 * Rule sets of several configurations that share their names share a number, so that a bucket has
 * one row for them. A number is found by its names again after a restart, whatever the
 * configuration has become.
 *
 * A place is a server with a location; a limit is a zone of either kind in a place.
 */
export class Names {
  readonly list: (readonly string[])[] = [];
  readonly #numbers = new Map<string, number>();

  /** The number of these names; a new one when they are new. */
  of(...names: readonly string[]): number {
    const text = JSON.stringify(names);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.list.push(names);
    this.#numbers.set(text, this.list.length - 1);
    return this.list.length - 1;
  }
}
