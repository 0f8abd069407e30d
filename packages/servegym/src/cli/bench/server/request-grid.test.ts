import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requestGrid } from './request-grid.ts';

describe('requestGrid', () => {
  it('takes numbers, and ranges that double and keep their end', () => {
    assert.deepEqual(requestGrid('7'), [7]);
    assert.deepEqual(requestGrid('1, 8,64'), [1, 8, 64]);
    assert.deepEqual(requestGrid('1..16'), [1, 2, 4, 8, 16]);
    assert.deepEqual(requestGrid('1..1000,16384'), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 16_384]);
    assert.deepEqual(requestGrid('5..5'), [5]);
  });

  it('refuses what it cannot run', () => {
    for (const text of ['', '0', '16385', '1.5', '-1', '1,,2', 'all', '1..99999', '8..1']) {
      assert.throws(() => requestGrid(text), { code: 'commander.invalidArgument' }, text);
    }
    assert.throws(() => requestGrid(`${'1,'.repeat(64)}1`), /at most 64 numbers, got 65/);
  });
});
