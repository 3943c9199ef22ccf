ALTER TABLE limitlens.key_minutes ADD COLUMN IF NOT EXISTS excess_low_max_milli SimpleAggregateFunction(max, Nullable(UInt64)) AFTER excess_max_milli;

ALTER TABLE limitlens.key_minutes ADD COLUMN IF NOT EXISTS excess_high_max_milli SimpleAggregateFunction(max, Nullable(UInt64)) AFTER excess_low_max_milli;
