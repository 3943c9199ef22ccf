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
              ${row.map((cell, i) => markup`<td${classOf(cell, columns[i])}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Numbers and times are read as one word. */
function classOf(cell: string | Markup, column: HtmlColumn | undefined): Markup {
  const isTime = typeof cell === 'string' && /^\d{4}-\d\d-\d\dT/.test(cell);
  return isTime ? markup` class="t"` : numeric(column?.isNumber);
}

function numeric(isNumber: boolean | undefined): Markup {
  return isNumber === true ? markup` class="n"` : NOTHING;
}
