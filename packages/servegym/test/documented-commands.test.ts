import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { buildProgram } from '../src/cli/program.ts';

const root = join(import.meta.dirname, '..', '..', '..');
/** Not the changelog, which tells of commands that are gone. */
const pages = globSync('{*,{docs,benchmarks}/*,{clients,deploy,packages}/**/*}.md', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
}).filter((page) => page !== 'CHANGELOG.md');

const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

/** The words behind each `servegym` of a page that begins a command, in code blocks and between backticks. */
function invocations(page: string): string[][] {
  const text = textOf(page).replace(/\\\n\s*/g, ' ');
  const lines = [
    ...[...text.matchAll(/^```(?:sh|text)?\n(.*?)^```/gms)].flatMap(([, block]) => block!.split('\n')),
    ...[...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!),
  ];
  return lines
    .map((line) => /^(?:[A-Z_]+=\S+ )*(?:npx )?servegym ([a-z-][^#]*)/.exec(line.trim())?.[1])
    .filter((words) => words !== undefined)
    .map((words) =>
      words
        .replace(/'[^']*'|"[^"]*"/g, 'quoted')
        .trim()
        .split(/\s+/),
    );
}

const program = await buildProgram('all');

/** The command that the words name, and the words that are left. */
function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command = program;
  let rest = words;
  for (;;) {
    const below = command.commands.find((each) => each.name() === rest[0]);
    if (below === undefined) return { command, rest };
    command = below;
    rest = rest.slice(1);
  }
}

describe('the documents', () => {
  it('name only commands and options that there are', () => {
    let seen = 0;
    for (const page of pages) {
      for (const words of invocations(page)) {
        const { command, rest } = commandOf(words);
        const said = `${page}: servegym ${words.join(' ')}`;
        assert.ok(rest.length < words.length || words[0].startsWith('-'), `${said}: no such command`);
        for (const word of rest.filter((each) => each.startsWith('--'))) {
          const name = word.split('=')[0];
          const isKnown = name === '--help' || command.options.some(({ long }) => long === name);
          assert.ok(isKnown, `${said}: no option ${name}`);
        }
        seen++;
      }
    }
    assert.ok(seen > 50, `${seen} commands`);
  });

  it('lead to files and headings that there are', () => {
    const anchorsOf = (path: string) =>
      [...textOf(path).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
        heading!
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\- ]/gu, '')
          .replaceAll(' ', '-'),
      );
    let seen = 0;
    for (const page of pages) {
      for (const [, link] of textOf(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)) {
        const [path, anchor] = link!.split('#') as [string, string | undefined];
        const target = path === '' ? page : join(dirname(page), path);
        assert.ok(existsSync(join(root, target)), `${page}: ${link} is not there`);
        if (anchor !== undefined && target.endsWith('.md'))
          assert.ok(anchorsOf(target).includes(anchor), `${page}: ${link} has no such heading`);
        seen++;
      }
    }
    assert.ok(seen > 50, `${seen} links`);
  });
});
