import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openEnvironment } from './open-environment.ts';

const GUESS = fileURLToPath(new URL('../../../openenv/examples/guess/environment.ts', import.meta.url));

function written(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'environment.mjs');
  writeFileSync(path, text);
  return path;
}

it('loads the one environment that a module exports', async () => {
  assert.equal((await openEnvironment(GUESS)).definition.id, 'guess');
});

it('tells what there is when neither a name nor a file fits', async () => {
  await assert.rejects(openEnvironment('llmserv'), {
    name: 'InputError',
    message: /one of llmserve, .*benchmark, or a module.*no file `llmserv`/,
  });
});

it('refuses a module that exports no environment, several, or does not run', async (t) => {
  const one = `{ id: 'a', version: '1', action: {}, create() {} }`;
  for (const [text, reason] of [
    ['export const nothing = 1;', /exports 0/],
    [`export const a = ${one}; export const b = ${one};`, /exports 2/],
    ['throw new Error("broken")', /could not be loaded: broken/],
  ] as const) {
    await assert.rejects(openEnvironment(written(t, text)), { name: 'InputError', message: reason });
  }
});
