/**
 * Tables of the page: a caption that says what the numbers are, numbers to the right.
 */
import { markup, NOTHING, type Markup } from './html-markup.js';

export interface HtmlColumn {
  readonly title: string;
  readonly isNumber?: boolean;
}

/** Nothing for no rows. */
export function htmlTable(
  caption: string,
  columns: readonly HtmlColumn[],
  rows: readonly (readonly (string | Markup)[])[],
): Markup {
  if (rows.length === 0) return NOTHING;
  return markup`<div class="wide">
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(({ title, isNumber }) => markup`<th scope="col" ${numeric(isNumber)}>${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            markup`<tr>
              ${row.map((cell, i) => markup`<td${numeric(columns[i]?.isNumber)}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function numeric(isNumber: boolean | undefined): Markup {
  return isNumber === true ? markup` class="n"` : NOTHING;
}
