/**
 * The tables of the store as version 1 made them: columns, order, partitions, how long rows live;
 * and the columns that later versions added.
 *
 * Aggregates are AggregatingMergeTree with SimpleAggregateFunction columns: rows of one key in two
 * blocks are added up by the engine when it merges and by sum()/max() when a query reads, so an
 * import may send the same bucket as often as it likes. There are no materialized views: a view's
 * target has its own deduplication and would count a replayed block twice; roll-ups come as blocks
 * of their own.
 *
 * Units: `…_milli` thousandths of a request, `…_ms` milliseconds, buckets UTC seconds.
 *
 * These definitions are frozen once released (test/golden/store holds them): a change is a new
 * entry in migrations.ts. Not here: the SQL text (ddl.ts).
 */

/** Which of the retention periods a table's rows follow; tables without a tier are kept for ever. */
export type Tier = 'bucket' | 'key' | 'sample';

export interface TableDefinition {
  readonly columns: readonly (readonly [name: string, type: string])[];
  /** A MergeTree family engine, with its version column where it has one. */
  readonly engine: string;
  readonly orderBy: readonly string[];
  /** The column whose month is the partition. */
  readonly monthOf?: string;
  readonly tier?: Tier;
  /** On a cluster, rows that agree in these columns live on one shard. */
  readonly shardBy: readonly string[];
}

const SUM = 'SimpleAggregateFunction(sum, UInt64)';
const MAX = 'SimpleAggregateFunction(max, UInt64)';
const NAME = 'LowCardinality(String)';
const SECONDS = "DateTime('UTC')";
const MILLISECONDS = "DateTime64(3, 'UTC')";
const BY_ZONE = ['instance', 'zone'];
const BY_INSTANCE = ['instance'];

const AGGREGATES = {
  /** What each zone decided, in buckets of 10 s. */
  zone_outcomes: {
    columns: [
      ['instance', NAME],
      ['zone', NAME],
      ['kind', NAME],
      ['server', NAME],
      ['location', NAME],
      ['bucket', SECONDS],
      ['outcome', NAME],
      ['requests', SUM],
      ['near_limit', SUM],
      ['excess_sum_milli', SUM],
      ['excess_max_milli', MAX],
      ['delay_ms_sum', SUM],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'zone', 'kind', 'bucket', 'outcome', 'server', 'location'],
    monthOf: 'bucket',
    tier: 'bucket',
    shardBy: BY_ZONE,
  },
  /** What clients got and who answered, in buckets of 10 s. */
  responses: {
    columns: [
      ['instance', NAME],
      ['server', NAME],
      ['location', NAME],
      ['bucket', SECONDS],
      ['status', 'UInt16'],
      ['source', NAME],
      ['limit_req_status', NAME],
      ['requests', SUM],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'server', 'bucket', 'status', 'source', 'limit_req_status', 'location'],
    monthOf: 'bucket',
    tier: 'bucket',
    shardBy: BY_INSTANCE,
  },
  /** excess / burst in steps of 5 %: 0 to 20, and 21 for everything above; minutes. */
  excess_histogram: {
    columns: [
      ['instance', NAME],
      ['zone', NAME],
      ['bucket', SECONDS],
      ['fraction', 'UInt8'],
      ['requests', SUM],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'zone', 'bucket', 'fraction'],
    monthOf: 'bucket',
    tier: 'bucket',
    shardBy: BY_ZONE,
  },
  key_minutes: {
    columns: [
      ['instance', NAME],
      ['zone', NAME],
      ['key', 'String'],
      ['minute', SECONDS],
      ['passed', SUM],
      ['delayed', SUM],
      ['rejected', SUM],
      ['delayed_dry_run', SUM],
      ['rejected_dry_run', SUM],
      ['exhausted', SUM],
      ['excess_max_milli', MAX],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'zone', 'minute', 'key'],
    monthOf: 'minute',
    tier: 'key',
    shardBy: BY_ZONE,
  },
  /** The memory of each zone, in buckets of 10 s. */
  zone_state: {
    columns: [
      ['instance', NAME],
      ['zone', NAME],
      ['bucket', SECONDS],
      ['nodes', MAX],
      ['capacity_nodes', MAX],
      ['evictions', SUM],
      ['evictions_in_debt', SUM],
      ['admitted_by_eviction', SUM],
      ['allocation_failures', SUM],
      ['keys_created', SUM],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'zone', 'bucket'],
    monthOf: 'bucket',
    tier: 'bucket',
    shardBy: BY_ZONE,
  },
  /** How the replay's verdict compares with what nginx logged; minutes. */
  agreement: {
    columns: [
      ['instance', NAME],
      ['zone', NAME],
      ['bucket', SECONDS],
      ['class', NAME],
      ['requests', SUM],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'zone', 'bucket', 'class'],
    monthOf: 'bucket',
    tier: 'bucket',
    shardBy: BY_ZONE,
  },
  line_counts: {
    columns: [
      ['instance', NAME],
      ['source', 'String'],
      ['bucket', SECONDS],
      ['kind', NAME],
      ['reason', NAME],
      ['lines', SUM],
    ],
    engine: 'AggregatingMergeTree',
    orderBy: ['instance', 'source', 'bucket', 'kind', 'reason'],
    monthOf: 'bucket',
    tier: 'bucket',
    shardBy: BY_INSTANCE,
  },
} as const satisfies Record<string, TableDefinition>;

const SAMPLES = {
  unparsable_samples: {
    columns: [
      ['instance', NAME],
      ['source', 'String'],
      ['offset', 'UInt64'],
      ['reason', NAME],
      ['raw', 'String'],
    ],
    engine: 'MergeTree',
    orderBy: ['instance', 'source', 'offset'],
    tier: 'sample',
    shardBy: BY_INSTANCE,
  },
  /** A few requests of each source of 429 and 503; paths without their arguments. */
  examples: {
    columns: [
      ['instance', NAME],
      ['server', NAME],
      ['location', NAME],
      ['status', 'UInt16'],
      ['source', NAME],
      ['time', MILLISECONDS],
      ['request_method', NAME],
      ['path', 'String'],
      ['zone', NAME],
      ['key', 'String'],
      ['excess_milli', 'UInt64'],
    ],
    engine: 'MergeTree',
    orderBy: ['instance', 'server', 'time'],
    monthOf: 'time',
    tier: 'sample',
    shardBy: BY_INSTANCE,
  },
  /** One row per code, subject and begin; a later row of the same finding moves its end. */
  findings: {
    columns: [
      ['instance', NAME],
      ['code', NAME],
      ['subject', 'String'],
      ['message', 'String'],
      ['since', MILLISECONDS],
      ['until', MILLISECONDS],
      ['details', 'String'],
    ],
    engine: 'ReplacingMergeTree(until)',
    orderBy: ['instance', 'code', 'subject', 'since'],
    tier: 'bucket',
    shardBy: BY_INSTANCE,
  },
  /** Reloads, restarts, imports: what a time line marks. */
  marks: {
    columns: [
      ['instance', NAME],
      ['time', MILLISECONDS],
      ['mark', NAME],
      ['details', 'String'],
    ],
    engine: 'MergeTree',
    orderBy: ['instance', 'time', 'mark'],
    tier: 'bucket',
    shardBy: BY_INSTANCE,
  },
  /** The configuration in force from a time on. `rules` is JSON. */
  limits: {
    columns: [
      ['instance', NAME],
      ['zone', NAME],
      ['since', MILLISECONDS],
      ['key_expression', 'String'],
      ['size_bytes', 'UInt64'],
      ['rate_milli_rps', 'UInt64'],
      ['capacity_nodes', 'UInt32'],
      ['rules', 'String'],
    ],
    engine: 'ReplacingMergeTree',
    orderBy: ['instance', 'zone', 'since'],
    shardBy: BY_ZONE,
  },
} as const satisfies Record<string, TableDefinition>;

/** Bookkeeping: written by write-ahead.ts alone. */
const CONTROL = {
  intents: {
    columns: [
      ['instance', 'String'],
      ['sequence', 'UInt64'],
      ['ranges', 'String'],
      ['started_by', 'String'],
      ['written', `${SECONDS} DEFAULT now()`],
    ],
    engine: 'ReplacingMergeTree(sequence)',
    orderBy: ['instance'],
    shardBy: BY_INSTANCE,
  },
  /**
   * Two slots per instance, used in turn: while a new checkpoint is being written the one before it
   * stays whole, and the engine drops the one before that.
   */
  checkpoints: {
    columns: [
      ['instance', 'String'],
      ['slot', 'UInt8'],
      ['part', 'UInt16'],
      ['parts', 'UInt16'],
      ['sequence', 'UInt64'],
      ['write_id', 'String'],
      ['log_time_ms', 'Int64'],
      ['chunk', 'String CODEC(NONE)'],
      ['written', `${MILLISECONDS} DEFAULT now64(3)`],
    ],
    engine: 'ReplacingMergeTree(sequence)',
    orderBy: ['instance', 'slot', 'part'],
    shardBy: BY_INSTANCE,
  },
  sources: {
    columns: [
      ['instance', 'String'],
      ['source_id', 'String'],
      ['sequence', 'UInt64'],
      ['name', 'String'],
      ['offset', 'UInt64'],
      ['lines', 'UInt64'],
      ['first_ms', 'Int64'],
      ['last_ms', 'Int64'],
      ['complete', 'Bool'],
    ],
    engine: 'ReplacingMergeTree(sequence)',
    orderBy: ['instance', 'source_id'],
    shardBy: BY_INSTANCE,
  },
} as const satisfies Record<string, TableDefinition>;

export const DATA_TABLES = { ...AGGREGATES, ...SAMPLES } as const;
export const TABLES: Readonly<Record<DataTableName | ControlTableName, TableDefinition>> = {
  ...DATA_TABLES,
  ...CONTROL,
};

type ControlTableName = keyof typeof CONTROL;
type DataTableName = keyof typeof DATA_TABLES;

/** The tables that an import fills, by insertBlock(). */
export type TableName = DataTableName;

const NULLABLE_MAX = 'SimpleAggregateFunction(max, Nullable(UInt64))';
const NULLABLE_SUM = 'SimpleAggregateFunction(sum, Nullable(UInt64))';

/** A column that came after version 1. NULL, which rows from before it have, is "not known". */
export interface AddedColumn {
  readonly version: number;
  readonly table: TableName;
  readonly name: string;
  readonly type: string;
  readonly after: string;
}

/** In the order of their coming; those of a table stand behind its columns of version 1. */
export const ADDED_COLUMNS: readonly AddedColumn[] = [
  {
    version: 2,
    table: 'key_minutes',
    name: 'excess_low_max_milli',
    type: NULLABLE_MAX,
    after: 'excess_max_milli',
  },
  {
    version: 2,
    table: 'key_minutes',
    name: 'excess_high_max_milli',
    type: NULLABLE_MAX,
    after: 'excess_low_max_milli',
  },
  {
    version: 2,
    table: 'zone_state',
    name: 'keys_in_minute',
    type: NULLABLE_MAX,
    after: 'keys_created',
  },
  {
    version: 2,
    table: 'zone_state',
    name: 'new_keys_in_minute',
    type: NULLABLE_SUM,
    after: 'keys_in_minute',
  },
];

/** Every table with the order in which they are made. */
export const ALL_TABLE_NAMES = Object.keys(TABLES) as (TableName | ControlTableName)[];

/** The columns of a table in the order of its definition, for Block.columns. */
export function columnsOf(table: TableName): readonly string[] {
  const added = ADDED_COLUMNS.filter((column) => column.table === table);
  return [...TABLES[table].columns.map(([name]) => name), ...added.map(({ name }) => name)];
}
