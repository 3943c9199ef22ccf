/**
 * One thing that `limitlens check` found, and how its fields are filled.
 */
import type { ConfWhere } from '../../parsers/conf/model.js';
import { type CheckCode, CODES } from './codes.js';

/** error: limits do not do what they are for; warning: they may not; info: worth knowing. */
export type Severity = 'error' | 'warning' | 'info';

export const SEVERITIES: readonly Severity[] = ['error', 'warning', 'info'];

export interface Finding {
  readonly code: CheckCode;
  readonly severity: Severity;
  /** null for what is about the configuration as a whole. */
  readonly where: ConfWhere | null;
  /** What was found, in one sentence without a full stop. */
  readonly message: string;
  /** Why it matters. */
  readonly why: string;
  /**
   * The lines to write, in nginx's syntax; null where no line would do. Each ends in a comment
   * that says where it goes: `# in http`, `# in server`, `# beside FILE:LINE` (on the same level),
   * `# instead of FILE:LINE` or of a directive, written out; a remark may follow a semicolon.
   */
  readonly fix: string | null;
}

/** What is particular to a finding; the reason is taken from the code's own, then `details`. */
export interface FindingParts {
  readonly severity: Severity;
  readonly where: ConfWhere | null;
  readonly message: string;
  readonly details?: string;
  readonly fix?: readonly string[];
}

export function finding(code: CheckCode, parts: FindingParts): Finding {
  const { severity, where, message, details, fix } = parts;
  const why = details === undefined ? CODES[code] : `${CODES[code]} ${details}`;
  const lines = fix ?? [];
  return { code, severity, where, message, why, fix: lines.length === 0 ? null : lines.join('\n') };
}
