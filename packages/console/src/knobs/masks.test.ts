import assert from 'node:assert/strict';
import { it } from 'node:test';
import { firstFrame } from '../state/frame.ts';
import { isMasked, maskedValues } from './masks.ts';

const values = [0, 1, 2];
const tier = { kind: 'choice', name: 'quant_tier', description: '', optional: false, values } as const;
const task = (active: string[]) =>
  ({ id: 1, name: '', difficulty: 'easy', description: '', active_actions: active }) as const;
const frame = (action_mask: unknown) =>
  firstFrame({ observation: {}, reward: null, done: false, metadata: { action_mask } });

it('a knob is masked where the task does not list it as active', () => {
  assert.equal(isMasked(tier, task(['batch_size']), undefined), true);
  assert.equal(isMasked(tier, task(['quant_tier']), undefined), false);
  assert.equal(isMasked(tier, undefined, undefined), false);
});

it('a knob or some of its values are masked where the window says so', () => {
  assert.equal(isMasked(tier, undefined, frame({ quant_tier: false })), true);
  assert.deepEqual(maskedValues(tier, values, frame({ quant_tier: [0, 1] })), [2]);
  assert.deepEqual(maskedValues(tier, values, frame('what')), []);
});
