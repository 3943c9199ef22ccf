/**
 * Lines with which nginx refuses a configuration because of its zones: at a reload the old one
 * stays in force, although `nginx -s reload` has said nothing.
 *
 * Sentences of ngx_init_cycle(), ngx_shared_memory_add(), ngx_http_limit_req_init_zone(),
 * ngx_http_limit_conn_init_zone() and ngx_http_limit_req().
 */

export interface ConfigurationRefused {
  readonly kind: 'zone_size_conflict' | 'zone_key_conflict' | 'zone_use_conflict' | 'refused';
  /** null when the refusal is about something else. */
  readonly zone: string | null;
  readonly message: string;
  /** Where in the configuration, when nginx says so. */
  readonly where: { readonly path: string; readonly line: number } | null;
}

const SENTENCES: readonly (readonly [ConfigurationRefused['kind'], RegExp])[] = [
  ['zone_size_conflict', /^the size \d+ of shared memory zone "([^"]*)" conflicts with/],
  ['zone_key_conflict', /^limit_(?:req|conn)\w* "([^"]*)" uses the ".*" key while previously/],
  [
    'zone_use_conflict',
    /^the shared memory zone "([^"]*)" is already declared for a different use/,
  ],
];
const WHERE = / in (\S+):(\d+)$/;

/** Reads an [emerg] message; undefined when it does not refuse a configuration. */
export function parseRefusal(message: string): ConfigurationRefused | undefined {
  const place = WHERE.exec(message);
  const where = place === null ? null : { path: place[1]!, line: Number(place[2]) };
  for (const [kind, sentence] of SENTENCES) {
    const match = sentence.exec(message);
    if (match !== null) return { kind, zone: match[1]!, message, where };
  }
  return where === null ? undefined : { kind: 'refused', zone: null, message, where };
}
