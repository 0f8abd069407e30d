import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { OLDEST_NODE, requireNode } from './require-node.ts';

test('a Node that is too old is named before anything fails on it', () => {
  assert.equal(manifest.engines.node, `>=${OLDEST_NODE}`);
  for (const version of ['22.18.0', '22.100.0', '24.0.0', '100.0.0']) requireNode(version);
  for (const version of ['9.1.0', '20.20.2', '22.2.0', '22.17.1']) {
    assert.throws(() => requireNode(version), {
      code: 'NODE_TOO_OLD',
      message: new RegExp(`22.18 .*${version}`),
    });
  }
});
