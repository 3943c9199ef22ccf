/**
 * Single values of a directive, as ngx_conf_set_flag_slot(), _num_slot() and _enum_slot() take
 * them: once per level, and the check for a second one comes before the value is looked at.
 */
import { refuse } from './level.js';
import type { Directive } from './lexer.js';
import type { LogLevel } from './model.js';
import { parseInteger } from './numbers.js';

function refuseSecond(directive: Directive, current: unknown): void {
  if (current !== undefined) refuse(directive, `"${directive.words[0]}" directive is duplicate`);
}

/** `on` or `off`, in any case. */
export function readFlag(directive: Directive, current: boolean | undefined): boolean {
  refuseSecond(directive, current);
  const [name, value = ''] = directive.words;
  const lower = value.toLowerCase();
  if (lower !== 'on' && lower !== 'off') {
    refuse(directive, `invalid value "${value}" in "${name}" directive, it must be "on" or "off"`);
  }
  return lower === 'on';
}

/** The status of a rejected request. */
export function readErrorStatus(directive: Directive, current: number | undefined): number {
  refuseSecond(directive, current);
  const status = parseInteger(directive.words[1]!);
  if (status === undefined) refuse(directive, `"${directive.words[0]}" directive invalid number`);
  if (status < 400n || status > 599n) refuse(directive, 'value must be between 400 and 599');
  return Number(status);
}

export function readLogLevel(directive: Directive, current: LogLevel | undefined): LogLevel {
  refuseSecond(directive, current);
  const value = directive.words[1]!.toLowerCase();
  if (value === 'info' || value === 'notice' || value === 'warn' || value === 'error') return value;
  return refuse(directive, `invalid value "${directive.words[1]}"`);
}

export function readText(directive: Directive, current: string | undefined): string {
  refuseSecond(directive, current);
  return directive.words[1]!;
}
