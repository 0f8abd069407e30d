import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { csvOf } from './csv.ts';

describe('rows as CSV', () => {
  it('have a column for each field, however deep, and quote what would end a cell', () => {
    const rows = [
      { cost: 0, classes: { batch: { waiting: 2 } }, none: undefined },
      { cost: 0.5, tier: 'a,"b"', sizes: [1, 2] },
    ];
    assert.deepEqual(csvOf(rows).split('\r\n'), [
      'cost,classes.batch.waiting,tier,sizes',
      '0,2,,',
      '0.5,,"a,""b""","[1,2]"',
      '',
    ]);
  });
});
