/**
 * The tokens of a statement as ClickHouse's own formatter writes it: no comments, one form of quotes
 * for strings, keywords in capitals. Text that is not of this form is refused, not guessed at.
 */
export interface SqlToken {
  readonly kind: 'word' | 'quoted' | 'string' | 'number' | 'parameter' | 'sign';
  /** Without the quotes for an identifier, its name; as written for all else. */
  readonly text: string;
}

const WORD = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const NUMBER = /\d(?:[eEpP][+-]|[\w.])*/y;
const STRING = /'(?:[^'\\]|\\[\s\S]|'')*'/y;
const QUOTED = /`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"/y;
const PARAMETER = /\{[A-Za-z_]\w*:[\w\s(),]+\}/y;
const SIGN = /::|->|<=|>=|!=|<>|==|\|\||[()[\],.*+\-/%=<>?:;]/y;
const FORMS = [
  ['word', WORD],
  ['number', NUMBER],
  ['string', STRING],
  ['quoted', QUOTED],
  ['parameter', PARAMETER],
  ['sign', SIGN],
] as const;

/** @returns undefined for text with anything else in it */
export function sqlTokens(sql: string): SqlToken[] | undefined {
  const tokens: SqlToken[] = [];
  for (let at = 0; at < sql.length;) {
    if (/\s/.test(sql[at]!)) {
      at++;
      continue;
    }
    // Comments are gone by now; what looks like one is not what it looks like.
    if (/^(?:--|\/\*|#)/.test(sql.slice(at, at + 2))) return undefined;
    const token = tokenAt(sql, at);
    if (token === undefined) return undefined;
    tokens.push(token.token);
    at = token.end;
  }
  return tokens;
}

function tokenAt(sql: string, at: number): { token: SqlToken; end: number } | undefined {
  for (const [kind, form] of FORMS) {
    form.lastIndex = at;
    const text = form.exec(sql)?.[0];
    if (text === undefined) continue;
    const name = kind === 'quoted' ? unquoted(text) : text;
    return { token: { kind, text: name }, end: at + text.length };
  }
  return undefined;
}

function unquoted(text: string): string {
  const mark = text[0]!;
  return text
    .slice(1, -1)
    .replaceAll(mark + mark, mark)
    .replace(/\\([\s\S])/g, '$1');
}
