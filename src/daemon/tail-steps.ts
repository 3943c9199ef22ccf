/**
 * Steps as the spool and the store's intents name them: flat ranges, so that an intent of the daemon
 * looks like one of an import, and one that goes on from another begins with its ranges.
 */
import type { TailRange } from './tail-state.js';

export interface StepRange extends TailRange {
  /** The record that the step belongs to. */
  readonly sequence: number;
  /** Ranges of one step have the same number; they begin at 0 in each record. */
  readonly step: number;
}

/** What one step reads, and up to which log time it hands on. */
export interface TailStep {
  readonly sequence: number;
  readonly untilMs: number | null;
  readonly ranges: readonly StepRange[];
}

/** Stands for a step that reads nothing. */
const NO_SOURCE = { sourceId: '', fromByte: 0, toByte: 0, name: '' } as const;

export function rangesOf(
  read: readonly Omit<TailRange, 'untilMs'>[],
  place: Pick<StepRange, 'untilMs' | 'sequence' | 'step'>,
): readonly StepRange[] {
  const { untilMs, sequence, step } = place;
  const all = read.length === 0 ? [NO_SOURCE] : read;
  return all.map((range): StepRange => ({ ...range, untilMs, sequence, step }));
}

/** The steps after a sequence, in order. */
export function stepsAfter(sequence: number, ranges: readonly StepRange[]): readonly TailStep[] {
  const steps = new Map<string, { first: StepRange; ranges: StepRange[] }>();
  for (const range of ranges) {
    if (range.sequence <= sequence) continue;
    const key = `${range.sequence}/${range.step}`;
    const step = steps.get(key) ?? { first: range, ranges: [] };
    steps.set(key, step);
    if (range.sourceId !== '') step.ranges.push(range);
  }
  return [...steps.values()].map(({ first, ...step }) => ({
    sequence: first.sequence,
    untilMs: first.untilMs,
    ...step,
  }));
}
