/**
 * Defaults that the command line names, apart from what they configure: that takes long to load.
 */
export const DEFAULT_STORE = './limitlens-data';

/** Who may ask a store that is offered over ClickHouse's HTTP protocol. */
export const DEFAULT_CLICKHOUSE_HTTP_USER = 'limitlens';
