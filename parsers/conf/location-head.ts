/**
 * The head of a `location`, after ngx_http_core_location(): its modifier, and whether it may
 * stand where it stands.
 */
import { addNote, Level, refuse, type Draft, type LocationDraft } from './level.js';
import type { Directive } from './lexer.js';
import type { LocationNode } from './model.js';
import { compilePcre } from './pcre.js';

type Kind = LocationNode['kind'];

const KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['=', 'exact'],
  ['^~', 'prefix-no-regex'],
  ['~', 'regex'],
  ['~*', 'regex-nocase'],
]);

/** @param outer the location around this one, if any */
export function readLocationHead(
  draft: Draft,
  directive: Directive,
  outer: LocationDraft | undefined,
): LocationDraft {
  const { kind, pattern } = splitHead(directive);
  if (outer !== undefined) refuseMisplaced(directive, kind, pattern, outer);
  if (kind === 'regex' || kind === 'regex-nocase') {
    const compiled = compilePcre(pattern, { nocase: kind === 'regex-nocase' });
    if (!(compiled instanceof RegExp)) {
      const message = `location "${pattern}" has ${compiled.unsupported}, and is passed over`;
      addNote(draft, 'regex-not-evaluated', message, directive.where);
    }
  }
  const level = new Level('location', directive.where);
  return { kind, pattern, level, children: [], end: directive.end };
}

/** With one value the modifier may be attached: `=/x`, `^~/x`, `~*x`. */
function splitHead(directive: Directive): { kind: Kind; pattern: string } {
  const [, word = '', pattern] = directive.words;
  if (pattern !== undefined) {
    const kind = KINDS.get(word);
    if (kind === undefined) refuse(directive, `invalid location modifier "${word}"`);
    return { kind, pattern };
  }
  const modifier = /^(?:=|\^~|~\*?)/.exec(word)?.[0] ?? '';
  if (modifier !== '') return { kind: KINDS.get(modifier)!, pattern: word.slice(modifier.length) };
  return { kind: word.startsWith('@') ? 'named' : 'prefix', pattern: word };
}

function refuseMisplaced(
  directive: Directive,
  kind: Kind,
  pattern: string,
  outer: LocationDraft,
): void {
  if (outer.kind === 'exact' || outer.kind === 'named') {
    refuse(
      directive,
      `location "${pattern}" cannot be inside the ${outer.kind} location "${outer.pattern}"`,
    );
  }
  if (kind === 'named') {
    refuse(directive, `named location "${pattern}" can be on the server level only`);
  }
  const isRegex = kind === 'regex' || kind === 'regex-nocase';
  if (!isRegex && !pattern.startsWith(outer.pattern)) {
    refuse(directive, `location "${pattern}" is outside location "${outer.pattern}"`);
  }
}
