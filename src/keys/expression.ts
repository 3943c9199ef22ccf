/**
 * The text of a key, or of a map's value, as literals and variables.
 *
 * Follows ngx_http_script_compile(): `$name`, `${name}`, `$1` to `$9`; names are compared without
 * case and are kept in lower case. What nginx refuses to start with is refused by the
 * configuration parser, so anything else after a `$` is taken as it stands.
 */

export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'capture'; readonly group: number };

const REFERENCE = /\$(?:([1-9])|\{(\w+)\}|(\w+))/g;

/** Splits an expression; neighbouring literals are one. */
export function parseExpression(expression: string): readonly Segment[] {
  const segments: Segment[] = [];
  let literalFrom = 0;
  for (const match of expression.matchAll(REFERENCE)) {
    if (match.index > literalFrom) {
      segments.push({ kind: 'literal', text: expression.slice(literalFrom, match.index) });
    }
    literalFrom = match.index + match[0].length;
    const [, group, braced, plain] = match;
    if (group !== undefined) segments.push({ kind: 'capture', group: Number(group) });
    else segments.push({ kind: 'variable', name: (braced ?? plain!).toLowerCase() });
  }
  if (literalFrom < expression.length) {
    segments.push({ kind: 'literal', text: expression.slice(literalFrom) });
  }
  return segments;
}
