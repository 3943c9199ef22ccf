/**
 * Where a `*_by_lua_block { … }` ends.
 *
 * The body is Lua, not nginx's language: a brace inside of a string, a long bracket or a comment
 * does not count, `#` is an operator and `;` ends nothing. The Lua itself is never evaluated.
 */

/** Pieces of Lua in which braces mean nothing, and the braces that do. */
const PIECE =
  /--\[(=*)\[[^]*?\]\1\]|--(?!\[=*\[)[^\n]*|\[(=*)\[[^]*?\]\2\]|"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'|[{}]/g;

/**
 * Finds the index behind the closing brace.
 *
 * @param text the whole file, latin1
 * @param from index behind the opening brace
 * @returns -1 when the file ends first
 */
export function endOfLuaBlock(text: string, from: number): number {
  let depth = 1;
  PIECE.lastIndex = from;
  for (let match = PIECE.exec(text); match !== null; match = PIECE.exec(text)) {
    if (match[0] === '{') depth++;
    if (match[0] !== '}') continue;
    depth--;
    if (depth === 0) return PIECE.lastIndex;
  }
  return -1;
}
