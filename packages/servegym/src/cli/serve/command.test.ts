import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { serveCommand } from './command.ts';

it('docs/serving.md lists the options of serve and their variables', () => {
  const page = readFileSync(new URL('../../../../../docs/serving.md', import.meta.url), 'utf8');
  const documented = [...page.matchAll(/^\| `(--[a-z-]+)` \|(?: `([A-Z_]+)`)? \|/gm)].map(
    ([, option, variable]) => [option, variable],
  );
  assert.deepEqual(
    documented,
    serveCommand().options.map(({ long, envVar }) => [long, envVar]),
  );
});
