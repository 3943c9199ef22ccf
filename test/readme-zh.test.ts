/**
 * README.zh-CN.md says what README.md says: the same sections, and in each the same commands, code,
 * links and figures. What one of both lacks is named, section by section.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Section {
  readonly level: number;
  readonly title: string;
  readonly text: string;
}

/** By headings outside of code; the first begins at the title. */
function sectionsOf(path: string): Section[] {
  const sections: { level: number; title: string; text: string }[] = [];
  let isCode = false;
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line.startsWith('```')) isCode = !isCode;
    const heading = isCode ? null : /^(#+) (.+)$/.exec(line);
    if (heading !== null) {
      sections.push({ level: heading[1]!.length, title: heading[2]!, text: '' });
    } else if (sections.length > 0) sections.at(-1)!.text += `${line}\n`;
  }
  return sections;
}

const ENGLISH = sectionsOf('README.md');
const CHINESE = sectionsOf('README.zh-CN.md');
/** The line by which each leads to the other. */
const OTHER_LANGUAGE = /^.*\]\(README(?:\.zh-CN)?\.md\).*$/m;
const FENCE = /^```.*\n[^]*?^```$/gm;
const BLOCK = /<!-- (\w+) -->\n[^]*?<!-- \/\1 -->/g;

type Part = (text: string) => string[];

const fencesOf: Part = (text) => text.match(FENCE) ?? [];
const blocksOf: Part = (text) => text.match(BLOCK) ?? [];
const proseOf = (text: string): string =>
  text.replace(OTHER_LANGUAGE, '').replace(BLOCK, '').replace(FENCE, '');
const codeOf: Part = (text) =>
  Array.from(proseOf(text).matchAll(/`([^`]+)`/g), ([, code]) => code!.replace(/\s+/g, ' '));
const linksOf: Part = (text) =>
  Array.from(proseOf(text).matchAll(/\]\(([^)]+)\)/g), ([, target]) => target!);
const figuresOf: Part = (text) =>
  proseOf(text)
    .replace(/`[^`]+`/g, '')
    .match(/\d+(?:,\d{3})*(?:\.\d+)*/g) ?? [];
const rowsOf: Part = (text) => (proseOf(text).match(/^\|/gm) ?? []).map((_, n) => `row ${n + 1}`);

/** What is in one list and not in the other; order is for the translator. */
function missing(from: readonly string[], other: readonly string[]): string[] {
  const left = [...other];
  return from.filter((one) => {
    const at = left.indexOf(one);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

test('both have the same sections', () => {
  const outline = (sections: readonly Section[]): string[] =>
    sections.map(({ level, title }, n) => `${'#'.repeat(level)} ${n + 1}. ${title}`);
  assert.deepEqual(
    CHINESE.map(({ level }) => level),
    ENGLISH.map(({ level }) => level),
    `README.md:\n${outline(ENGLISH).join('\n')}\n\nREADME.zh-CN.md:\n${outline(CHINESE).join('\n')}`,
  );
});

const PARTS = {
  'code block': fencesOf,
  'generated block': blocksOf,
  code: codeOf,
  link: linksOf,
  figure: figuresOf,
  'row of a table': rowsOf,
} as const;

for (const [what, part] of Object.entries(PARTS)) {
  test(`both have each ${what} in the same section`, () => {
    const differences = ENGLISH.flatMap(({ title, text }, n) => {
      const other = CHINESE[n]?.text ?? '';
      return [
        ...missing(part(text), part(other)).map(
          (one) => `README.zh-CN.md, "${title}": lacks ${one}`,
        ),
        ...missing(part(other), part(text)).map((one) => `README.md, "${title}": lacks ${one}`),
      ];
    });
    assert.deepEqual(differences, []);
  });
}

test('the parts are found at all', () => {
  for (const [what, part] of Object.entries(PARTS)) {
    const found = ENGLISH.flatMap(({ text }) => part(text));
    assert.ok(found.length >= 2, what);
  }
});
