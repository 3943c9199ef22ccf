/**
 * Directives that decide about a request before, or beside, the limits.
 *
 * nginx runs the server's rewrite directives, finds the location, runs that location's rewrite
 * directives, and only then, in the preaccess phase, limit_req and limit_conn. An unconditional
 * `return` is certain; everything else here depends on the request in ways that limitlens does
 * not follow, and is noted with its place.
 */
import { addNote, refuse, type Draft, type Level } from './level.js';
import type { Directive } from './lexer.js';
import { parseInteger } from './numbers.js';
import { definedVariable } from './variables.js';

/** `return CODE [TEXT]` or `return URL`. */
export function readReturn(draft: Draft, level: Level, directive: Directive): void {
  const [, code = '', text] = directive.words;
  const isUrl = text === undefined && /^(?:https?:\/\/|\$scheme)/.test(code);
  const status = parseInteger(code);
  if (!isUrl && (status === undefined || status > 999n)) {
    refuse(directive, `invalid return code "${code}"`);
  }
  if (level.isBreakSeen) return;
  if (level.owner === level) {
    level.returnWhere ??= directive.where;
    return;
  }
  const message = 'a return inside of "if": the requests it answers never reach a limit';
  addNote(draft, 'return-in-if', message, directive.where);
}

/** `rewrite REGEX REPLACEMENT [FLAG]`. */
export function readRewrite(draft: Draft, level: Level, directive: Directive): void {
  const [, pattern = '', replacement = '', flag] = directive.words;
  const flags = ['last', 'break', 'redirect', 'permanent'];
  if (flag !== undefined && !flags.includes(flag)) refuse(directive, `invalid parameter "${flag}"`);
  if (level.isBreakSeen) return;
  const isRedirect =
    flag === 'redirect' || flag === 'permanent' || /^(?:https?:\/\/|\$scheme)/.test(replacement);
  if (isRedirect) {
    const message = `the rewrite of "${pattern}" answers with a redirect before the limits`;
    addNote(draft, 'rewrite-redirects', message, directive.where);
    return;
  }
  const isServer = level.owner.context === 'server';
  // In a location `break` changes the URI but not the location, and so not the limits.
  if (flag === 'break' && !isServer) return;
  level.owner.rewriteWhere ??= directive.where;
  const message = `the rewrite of "${pattern}" may lead to another location`;
  addNote(draft, 'rewrite-not-followed', message, directive.where);
}

export function readBreak(_draft: Draft, level: Level): void {
  if (level.owner === level) level.isBreakSeen = true;
}

export function readInternal(_draft: Draft, level: Level, directive: Directive): void {
  level.internalWhere ??= directive.where;
}

/** `auth_request URI | off`. */
export function readAuthRequest(draft: Draft, level: Level, directive: Directive): void {
  level.asksAuth = directive.words[1] !== 'off';
  if (!level.asksAuth) return;
  const message = 'auth_request runs after the limits and may answer with its own status';
  addNote(draft, 'auth-request', message, directive.where);
}

/** `try_files FILE… URI`: a file that is there becomes the URI as well. */
export function readTryFiles(_draft: Draft, level: Level, directive: Directive): void {
  level.tryFiles = directive.words.slice(1);
}

/** `error_page CODE… [=CODE] URI`. */
export function readErrorPage(_draft: Draft, level: Level, directive: Directive): void {
  (level.owner.errorPages ??= []).push(directive.words.at(-1)!);
}

/** `set $variable VALUE`; whether it matters is asked when all zones are known. */
export function readSet(draft: Draft, _level: Level, directive: Directive): void {
  const variable = definedVariable(directive, directive.words[1]!);
  draft.assignments.push({ variable, directive: 'set', where: directive.where });
}

export function readIfCondition(directive: Directive): void {
  const first = directive.words[1]!;
  const last = directive.words.at(-1)!;
  if (!first.startsWith('(')) refuse(directive, `invalid condition "${first}"`);
  if (!last.endsWith(')')) refuse(directive, `invalid condition "${last}"`);
}

const LUA_BEFORE = /^(?:server_rewrite|rewrite)_by_lua/;
const LUA_AFTER = /^(?:access|content|precontent)_by_lua/;
const VARIABLE_SETTERS =
  /^(?:set_by_lua\w*|js_set|js_var|perl_set|auth_request_set|split_clients)$/;

/** A directive of a module that limitlens does not read, in http, a server or a location. */
export function noteForeign(draft: Draft, directive: Directive): void {
  const [name = '', ...values] = directive.words;
  const where = directive.where;
  if (VARIABLE_SETTERS.test(name)) {
    for (const value of values.filter((word) => word.startsWith('$'))) {
      draft.assignments.push({ variable: value.slice(1), directive: name, where });
    }
  }
  if (LUA_BEFORE.test(name)) {
    const message = `${name} runs before the limits and may answer or lead elsewhere`;
    addNote(draft, 'lua-before-limit', message, where);
  } else if (LUA_AFTER.test(name)) {
    const message = `${name} runs after the limits and may answer with any status`;
    addNote(draft, 'lua-after-limit', message, where);
  } else if (name === 'js_content' || name === 'js_access') {
    addNote(draft, 'js-not-followed', `${name} may answer or lead elsewhere`, where);
  }
}

/** Inside of a block that is not read at all, limits are at least not passed over in silence. */
export function noteUnreadLimit(draft: Draft, directive: Directive, block: string): void {
  const name = directive.words[0]!;
  if (!/^limit_(?:req|conn)/.test(name)) return;
  const isStream = block === 'stream';
  const code = isStream ? 'stream-limit-conn' : 'limit-in-unknown-block';
  const reason = isStream ? 'limits connections, not requests' : 'is not a block limitlens reads';
  addNote(draft, code, `${name} is left out: "${block}" ${reason}`, directive.where);
}
