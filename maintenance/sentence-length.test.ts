import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';

const root = dirname(import.meta.dirname);
const MOST_WORDS = 35;
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'benchmarks/README.md',
  'clients/python/README.md',
  'docs/**/*.md',
  'packages/*/README.md',
];

/** Sentences of a page, outside code fences, comments, tables and headings. */
function sentences(markdown: string): string[] {
  const text = markdown
    .replace(/^---\n.*?^---$/ms, '')
    .replace(/^[ \t]*```.*?^[ \t]*```$/gms, '\n')
    .replace(/<!--.*?-->/gs, '')
    .replace(/^\s*[|#].*$/gm, '\n')
    .replace(/^\s*(?:[-*]|\d+\.)\s/gm, '\n\n');
  return text.split(/\n\s*\n/).flatMap((paragraph) =>
    paragraph
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/`[^`]*`/g, 'Code')
      .split(/(?<=[.!?])\s+|(?<=:)\s+(?=[A-Z*[])/),
  );
}

const words = (sentence: string) => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length;

describe('sentences', () => {
  it('are told apart from code, tables, headings and list items', () => {
    const page =
      '# A heading\n\nOne `a b`. Two\nwords? [See it](x.md): This\n\n```sh\nx. y\n```\n- an item\n- another\n\n| a | b. c |\n';
    assert.deepEqual(
      sentences(page)
        .map((sentence) => sentence.trim())
        .filter(Boolean),
      ['One Code.', 'Two\nwords?', 'See it:', 'This', 'an item', 'another'],
    );
  });

  it(`data: have at most ${MOST_WORDS} words in README and docs`, () => {
    const long = globSync(PAGES, { cwd: root }).flatMap((page) =>
      sentences(readFileSync(join(root, page), 'utf8'))
        .filter((sentence) => words(sentence) > MOST_WORDS)
        .map((sentence) => `${page}, ${words(sentence)} words: ${sentence.replace(/\s+/g, ' ')}`),
    );
    assert.deepEqual(long, []);
  });
});
