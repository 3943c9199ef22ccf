ALTER TABLE limitlens.key_minutes ADD COLUMN IF NOT EXISTS excess_low_max_milli SimpleAggregateFunction(max, Nullable(UInt64)) AFTER excess_max_milli;

ALTER TABLE limitlens.key_minutes ADD COLUMN IF NOT EXISTS excess_high_max_milli SimpleAggregateFunction(max, Nullable(UInt64)) AFTER excess_low_max_milli;

ALTER TABLE limitlens.zone_state ADD COLUMN IF NOT EXISTS keys_in_minute SimpleAggregateFunction(max, Nullable(UInt64)) AFTER keys_created;

ALTER TABLE limitlens.zone_state ADD COLUMN IF NOT EXISTS new_keys_in_minute SimpleAggregateFunction(sum, Nullable(UInt64)) AFTER keys_in_minute;
