/**
 * Which of the engine's functions compute and do nothing else.
 *
 * Taken from the engine's own list by category, so that functions which newer versions bring are
 * judged as well: those of a category that is not named here are refused. The category "Other" holds
 * file() and sleep() beside harmless ones, so those are named one by one.
 */
export interface EngineFunction {
  readonly name: string;
  readonly aliasTo: string;
  readonly category: string;
  readonly isAggregate: boolean;
}

export const FUNCTIONS_SQL = `SELECT name, alias_to AS aliasTo, categories AS category,
  toBool(is_aggregate) AS isAggregate FROM system.functions WHERE origin = 'System'`;
export const COMBINATORS_SQL = 'SELECT name FROM system.aggregate_function_combinators';

const CATEGORIES = new Set([
  'Aggregate Functions',
  'Arithmetic',
  'Arrays',
  'Bit',
  'Bitmap',
  'Comparison',
  'Conditional',
  'Dates and Times',
  'Distance',
  'Encoding',
  'Financial',
  'Hash',
  'IP Address',
  'JSON',
  'Logical',
  'Map',
  'Mathematical',
  'Null',
  'Random Number',
  'Rounding',
  'String',
  'String Replacement',
  'String Search',
  'String Splitting',
  'Time Window',
  'Tuple',
  'Type Conversion',
  'URL',
  'UUID',
]);

/** Of the category Other. displayName and the like are what clients ask when they connect. */
const OTHERS = new Set(
  (
    'bar byteSize countDigits currentDatabase currentUser defaultValueOfTypeName displayName ' +
    'finalizeAggregation formatReadableDecimalSize formatReadableQuantity formatReadableSize ' +
    'formatReadableTimeDelta identity ignore indexHint initializeAggregation isConstant ' +
    'lowCardinalityIndices lowCardinalityKeys materialize neighbor parseReadableSize parseTimeDelta ' +
    'revision rowNumberInAllBlocks rowNumberInBlock runningAccumulate runningDifference throwIf ' +
    'toColumnTypeName toTypeName transform version visibleWidth'
  ).split(' '),
);

/** In an allowed category, and not needed by anybody: it is the engine's own door to the outside. */
const NEVER = new Set(['chdb', 'flameGraph', 'aggThrow']);

export class FunctionRights {
  readonly #allowed = new Set<string>();
  readonly #forbidden = new Set<string>();
  readonly #aggregates = new Set<string>();
  readonly #combinators: readonly string[];

  constructor(functions: readonly EngineFunction[], combinators: readonly string[]) {
    const byName = new Map(functions.map((fn) => [fn.name, fn]));
    for (const fn of functions) {
      const meant = byName.get(fn.aliasTo) ?? fn;
      const isHarmless =
        !NEVER.has(meant.name) && (CATEGORIES.has(meant.category) || OTHERS.has(meant.name));
      // Many take any case, and one forbidden spelling forbids them all.
      const name = fn.name.toLowerCase();
      (isHarmless ? this.#allowed : this.#forbidden).add(name);
      if (isHarmless && meant.isAggregate) this.#aggregates.add(name);
    }
    this.#combinators = combinators.map((name) => name.toLowerCase());
  }

  isAllowed(written: string): boolean {
    const name = written.toLowerCase();
    if (this.#forbidden.has(name)) return false;
    return this.#allowed.has(name) || this.#isCombined(name);
  }

  /** Whether the engine has such a function and it may not be called. */
  isForbidden(name: string): boolean {
    return this.#forbidden.has(name.toLowerCase());
  }

  /** `sumIf`, `uniqMergeState`: an aggregate function with suffixes. */
  #isCombined(name: string): boolean {
    return this.#combinators.some((suffix) => {
      if (!name.endsWith(suffix)) return false;
      const base = name.slice(0, -suffix.length);
      return this.#aggregates.has(base) || (base !== '' && this.#isCombined(base));
    });
  }
}
