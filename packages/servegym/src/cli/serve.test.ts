import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { LIMITS, serveCommand } from './serve.ts';

it('docs/serving.md lists the options of serve and their variables', () => {
  const page = readFileSync(new URL('../../../../docs/serving.md', import.meta.url), 'utf8');
  const documented = [...page.matchAll(/^\| `(--[a-z-]+)` \|(?: `([A-Z_]+)`)? \|/gm)].map(
    ([, option, variable]) => [option, variable],
  );
  assert.deepEqual(
    documented,
    serveCommand().options.map(({ long, envVar }) => [long, envVar]),
  );
  const limits = [...page.matchAll(/^\| `--limit ([a-z-]+)=` \| `([A-Z_]+)` \|/gm)];
  assert.deepEqual(
    limits.map(([, name, variable]) => [name, variable]),
    Object.entries(LIMITS).map(([name, { env }]) => [name, env]),
  );
});
