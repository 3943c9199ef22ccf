/**
 * The open sources of one log, the oldest first.
 */
import type { LogContent } from './follow-content.js';
import { isSameFile, type FilePlace, type KnownLog, type LogProgress } from './follow-progress.js';
import { ReadError, type FollowedSource } from './follow-source.js';

export class SourceList {
  readonly #sources: FollowedSource[] = [];

  get all(): readonly FollowedSource[] {
    return this.#sources;
  }

  /** Bytes seen by the last look and not given yet. */
  get lagBytes(): number {
    return this.#sources.reduce((sum, source) => sum + source.lagBytes, 0);
  }

  /** The files of those that lines have come from. */
  get begun(): LogContent[] {
    return this.#sources.filter(({ offset }) => offset > 0).map(({ content }) => content);
  }

  get contents(): LogContent[] {
    return this.#sources.map(({ content }) => content);
  }

  progress(): LogProgress[] {
    return this.#sources
      .map((source) => source.progress())
      .filter((progress) => progress !== undefined);
  }

  /** What the files hold now, to compare others with. */
  async known(): Promise<KnownLog[]> {
    for (const source of this.#sources) {
      await source.identify().catch((error: unknown) => {
        // Whoever reads its lines meets the same error and tells of it.
        if (!(error instanceof ReadError)) throw error;
      });
    }
    return this.#sources.map(remembered).filter((known) => known !== undefined);
  }

  hasId(sourceId: string): boolean {
    return this.#sources.some((source) => source.sourceId === sourceId);
  }

  find(content: LogContent): FollowedSource | undefined {
    return this.#sources.find((source) => isSameFile(source.content, content));
  }

  /**
   * Puts a source where its file belongs.
   *
   * @param order the files that have names, oldest first
   * @param before what it precedes, should that have no name any more
   */
  insert(
    source: FollowedSource,
    order: readonly FilePlace[],
    before: FollowedSource | undefined,
  ): void {
    const ageOf = ({ content }: FollowedSource): number =>
      order.findIndex((other) => isSameFile(other, content));
    const age = ageOf(source);
    const isNewer = (other: FollowedSource): boolean =>
      ageOf(other) > age || (other === before && ageOf(other) < 0);
    const at = this.#sources.findIndex(isNewer);
    this.#sources.splice(at < 0 ? this.#sources.length : at, 0, source);
  }

  replace(source: FollowedSource, by: FollowedSource): void {
    this.#sources[this.#sources.indexOf(source)] = by;
  }

  remove(source: FollowedSource): void {
    this.#sources.splice(this.#sources.indexOf(source), 1);
  }

  /** Those whose place is after a source's. */
  after(source: FollowedSource): readonly FollowedSource[] {
    return this.#sources.slice(this.#sources.indexOf(source) + 1);
  }
}

/** What is known of a source, with the bytes at hand; undefined before its first line. */
export function remembered(source: FollowedSource): KnownLog | undefined {
  const progress = source.progress();
  return progress === undefined ? undefined : { ...progress, head: source.head };
}
