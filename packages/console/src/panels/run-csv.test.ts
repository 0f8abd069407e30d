import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstFrame, nextFrame } from '../state/frame.ts';
import { csvOf } from './csv.ts';
import { rowsOf } from './run-csv.ts';

describe('the CSV of a run', () => {
  it('has a row for each window, and quotes what would end a cell', () => {
    const outcome = { reward: null, done: false, metadata: { window_s: 5 } };
    const start = firstFrame({ ...outcome, observation: { queue: 0, classes: { batch: { waiting: 2 } } } });
    const step = nextFrame(start, {
      ...outcome,
      reward: 0.5,
      action: { cap: 8, tier: 'a,"b"' },
      observation: { queue: 3, sizes: [1, 2], reward: 0.5 },
    });
    assert.deepEqual(csvOf(rowsOf([start, step])).split('\r\n'), [
      'window,time_s,reward,return,queue,classes.batch.waiting,action.cap,action.tier,sizes',
      '0,0,,0,0,2,,,',
      '1,5,0.5,0.5,3,,8,"a,""b""","[1,2]"',
      '',
    ]);
  });
});
