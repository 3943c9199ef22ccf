/**
 * What nginx refuses to start with, and so does limitlens.
 *
 * The wording is nginx's own wherever nginx has one, so that a search for it finds nginx's
 * documentation. Parsers know no exit codes; src/input/conf-files.ts gives the error one.
 */
import type { ConfWhere } from './model.js';

export class ConfError extends Error {
  override readonly name = 'ConfError';
  /** The line on which nginx reports it: where the directive ends, not where it begins. */
  readonly where: ConfWhere;
  /** The message without file and line. */
  readonly reason: string;

  constructor(where: ConfWhere, reason: string) {
    super(`${where.path}:${where.line}: ${reason}`);
    this.where = where;
    this.reason = reason;
  }
}
