/**
 * Text as it is, with nothing in it that hides. Pure: knows no page.
 */

/**
 * Text with what can't be seen made visible: controls, separators of lines, and marks that hide or
 * turn text around, so that a key looks like what it is.
 */
export function visible(text: string): string {
  return text.replace(
    /[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
