import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';

const root = join(import.meta.dirname, '../../..');

it('the lines of docs/faq.md complete commands and options in bash', () => {
  const [, lines] = /```sh\n(_servegym[^`]+)```/.exec(readFileSync(join(root, 'docs/faq.md'), 'utf8'))!;
  const completed = (...words: string[]) => {
    const script = `servegym() { "$NODE" ${join(root, 'packages/servegym/src/main.ts')} "$@"; }
${lines}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _servegym; echo "\${COMPREPLY[@]}"`;
    const environment = { ...process.env, NODE: process.execPath };
    const text = execFileSync('bash', ['-c', script, 'bash', ...words], {
      env: environment,
      encoding: 'utf8',
    });
    return [...new Set(text.trim().split(' '))];
  };
  assert.deepEqual(completed('servegym', 'pro'), ['profile']);
  assert.ok(completed('servegym', 'profile', '').includes('make'));
  assert.deepEqual(completed('servegym', 'plan', 'log.csv', '--sl'), ['--slo']);
});
