/**
 * The syntax of values with variables, as ngx_http_script_compile() checks it.
 *
 * Not here: whether a variable exists, which depends on the modules nginx was built with.
 */
import { refuse } from './level.js';
import type { Directive } from './lexer.js';

const VARIABLE = /\$(?:\{([A-Za-z0-9_]*)(\}?)|([A-Za-z0-9_]*))/g;

/** Names in a value, without the dollar; captures such as `$1` are left out. */
export function variablesOf(value: string): readonly string[] {
  return [...value.matchAll(VARIABLE)]
    .map((match) => match[1] ?? match[3]!)
    .filter((name) => name !== '' && !/^[1-9]/.test(name));
}

/** @throws ConfError for a lone dollar or a brace that is not closed */
export function checkVariables(directive: Directive, value: string): void {
  for (const match of value.matchAll(VARIABLE)) {
    const name = match[1] ?? match[3]!;
    if (match[2] === '' && (name !== '' || match[0].length < value.length - match.index)) {
      refuse(directive, `the closing bracket in "${name}" variable is missing`);
    }
    if (name === '') refuse(directive, 'invalid variable name');
  }
}

/** The name behind the dollar of a variable that a directive defines. */
export function definedVariable(directive: Directive, word: string): string {
  if (!word.startsWith('$')) refuse(directive, `invalid variable name "${word}"`);
  return word.slice(1);
}
