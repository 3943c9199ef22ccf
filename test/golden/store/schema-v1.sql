CREATE TABLE IF NOT EXISTS limitlens.zone_outcomes
(
  `instance` LowCardinality(String),
  `zone` LowCardinality(String),
  `kind` LowCardinality(String),
  `server` LowCardinality(String),
  `location` LowCardinality(String),
  `bucket` DateTime('UTC'),
  `outcome` LowCardinality(String),
  `requests` SimpleAggregateFunction(sum, UInt64),
  `near_limit` SimpleAggregateFunction(sum, UInt64),
  `excess_sum_milli` SimpleAggregateFunction(sum, UInt64),
  `excess_max_milli` SimpleAggregateFunction(max, UInt64),
  `delay_ms_sum` SimpleAggregateFunction(sum, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (`instance`, `zone`, `kind`, `bucket`, `outcome`, `server`, `location`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.responses
(
  `instance` LowCardinality(String),
  `server` LowCardinality(String),
  `location` LowCardinality(String),
  `bucket` DateTime('UTC'),
  `status` UInt16,
  `source` LowCardinality(String),
  `limit_req_status` LowCardinality(String),
  `requests` SimpleAggregateFunction(sum, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (`instance`, `server`, `bucket`, `status`, `source`, `limit_req_status`, `location`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.excess_histogram
(
  `instance` LowCardinality(String),
  `zone` LowCardinality(String),
  `bucket` DateTime('UTC'),
  `fraction` UInt8,
  `requests` SimpleAggregateFunction(sum, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (`instance`, `zone`, `bucket`, `fraction`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.key_minutes
(
  `instance` LowCardinality(String),
  `zone` LowCardinality(String),
  `key` String,
  `minute` DateTime('UTC'),
  `passed` SimpleAggregateFunction(sum, UInt64),
  `delayed` SimpleAggregateFunction(sum, UInt64),
  `rejected` SimpleAggregateFunction(sum, UInt64),
  `delayed_dry_run` SimpleAggregateFunction(sum, UInt64),
  `rejected_dry_run` SimpleAggregateFunction(sum, UInt64),
  `exhausted` SimpleAggregateFunction(sum, UInt64),
  `excess_max_milli` SimpleAggregateFunction(max, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(minute)
ORDER BY (`instance`, `zone`, `minute`, `key`)
TTL stored + toIntervalDay(90)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.zone_state
(
  `instance` LowCardinality(String),
  `zone` LowCardinality(String),
  `bucket` DateTime('UTC'),
  `nodes` SimpleAggregateFunction(max, UInt64),
  `capacity_nodes` SimpleAggregateFunction(max, UInt64),
  `evictions` SimpleAggregateFunction(sum, UInt64),
  `evictions_in_debt` SimpleAggregateFunction(sum, UInt64),
  `admitted_by_eviction` SimpleAggregateFunction(sum, UInt64),
  `allocation_failures` SimpleAggregateFunction(sum, UInt64),
  `keys_created` SimpleAggregateFunction(sum, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (`instance`, `zone`, `bucket`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.agreement
(
  `instance` LowCardinality(String),
  `zone` LowCardinality(String),
  `bucket` DateTime('UTC'),
  `class` LowCardinality(String),
  `requests` SimpleAggregateFunction(sum, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (`instance`, `zone`, `bucket`, `class`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.line_counts
(
  `instance` LowCardinality(String),
  `source` String,
  `bucket` DateTime('UTC'),
  `kind` LowCardinality(String),
  `reason` LowCardinality(String),
  `lines` SimpleAggregateFunction(sum, UInt64),
  `stored` SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (`instance`, `source`, `bucket`, `kind`, `reason`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.unparsable_samples
(
  `instance` LowCardinality(String),
  `source` String,
  `offset` UInt64,
  `reason` LowCardinality(String),
  `raw` String,
  `stored` DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
ORDER BY (`instance`, `source`, `offset`)
TTL stored + toIntervalDay(90)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.examples
(
  `instance` LowCardinality(String),
  `server` LowCardinality(String),
  `location` LowCardinality(String),
  `status` UInt16,
  `source` LowCardinality(String),
  `time` DateTime64(3, 'UTC'),
  `request_method` LowCardinality(String),
  `path` String,
  `zone` LowCardinality(String),
  `key` String,
  `excess_milli` UInt64,
  `stored` DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(time)
ORDER BY (`instance`, `server`, `time`)
TTL stored + toIntervalDay(90)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.findings
(
  `instance` LowCardinality(String),
  `code` LowCardinality(String),
  `subject` String,
  `message` String,
  `since` DateTime64(3, 'UTC'),
  `until` DateTime64(3, 'UTC'),
  `details` String,
  `stored` DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(until)
ORDER BY (`instance`, `code`, `subject`, `since`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.marks
(
  `instance` LowCardinality(String),
  `time` DateTime64(3, 'UTC'),
  `mark` LowCardinality(String),
  `details` String,
  `stored` DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
ORDER BY (`instance`, `time`, `mark`)
TTL stored + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.limits
(
  `instance` LowCardinality(String),
  `zone` LowCardinality(String),
  `since` DateTime64(3, 'UTC'),
  `key_expression` String,
  `size_bytes` UInt64,
  `rate_milli_rps` UInt64,
  `capacity_nodes` UInt32,
  `rules` String
)
ENGINE = ReplacingMergeTree
ORDER BY (`instance`, `zone`, `since`)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.intents
(
  `instance` String,
  `sequence` UInt64,
  `ranges` String,
  `started_by` String,
  `written` DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(sequence)
ORDER BY (`instance`)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.checkpoints
(
  `instance` String,
  `slot` UInt8,
  `part` UInt16,
  `parts` UInt16,
  `sequence` UInt64,
  `write_id` String,
  `log_time_ms` Int64,
  `chunk` String CODEC(NONE),
  `written` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(sequence)
ORDER BY (`instance`, `slot`, `part`)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS limitlens.sources
(
  `instance` String,
  `source_id` String,
  `sequence` UInt64,
  `name` String,
  `offset` UInt64,
  `lines` UInt64,
  `first_ms` Int64,
  `last_ms` Int64,
  `complete` Bool
)
ENGINE = ReplacingMergeTree(sequence)
ORDER BY (`instance`, `source_id`)
SETTINGS non_replicated_deduplication_window = 10000;
