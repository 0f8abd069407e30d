import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeSafetensors, encodeSafetensors } from '../../formats/safetensors.ts';
import { HeuristicPolicy } from '../policies/heuristic-policy.ts';
import { demonstrate } from './demonstrate.ts';
import { decodeDemonstrations, encodeDemonstrations } from './demonstrations-file.ts';

describe('a file of demonstrations', () => {
  const episodes = [7, 8].map((trace) => demonstrate('static_workload', trace, new HeuristicPolicy()));
  const file = encodeDemonstrations(episodes, { teacher: 'heuristic' });

  it('gives back what was shown, bit for bit', () => {
    assert.deepEqual(decodeDemonstrations(file), { episodes, metadata: { teacher: 'heuristic' } });
  });

  it('is told from other files, and what it lacks is said', () => {
    const { tensors, metadata } = decodeSafetensors(file);
    assert.equal(decodeDemonstrations(encodeSafetensors({ tensors, metadata: {} })), null);
    const { actions: _, ...incomplete } = tensors;
    for (const [changed, message] of [
      [{ tensors: incomplete, metadata }, /Expected a tensor `actions` of 2 rows, got none/],
      [
        { tensors: { ...tensors, actions: { shape: [1, 2], values: new Float32Array(2) } }, metadata },
        /Expected a tensor `actions` of 2 rows, got one of shape 1 x 2/,
      ],
      [{ tensors, metadata: { ...metadata, demonstrations: '9' } }, /of version 1, got version 9/],
    ] as const) {
      assert.throws(() => decodeDemonstrations(encodeSafetensors(changed)), {
        code: 'TENSOR_FILE',
        message,
      });
    }
  });
});
