import { RandomStream } from '@servegym/simulator';
import fc from 'fast-check';
import { GYM_DEFAULT_ACTION, type GymAction, SPEC_LENGTHS } from './schema.ts';

/** Any valid action. */
export const anyGymAction: fc.Arbitrary<GymAction> = fc.record({
  kv_budget: fc.double({ min: 0.1, max: 1, noNaN: true }),
  spec_length: fc.constantFrom(...SPEC_LENGTHS),
  batch_size: fc.integer({ min: 1, max: 512 }),
  prefill_disagg: fc.boolean(),
  quant_tier: fc.constantFrom(0, 1, 2),
});

/** Turns every knob now and then, the costly ones less often. */
export function wanderingGymActions(seed: number): () => GymAction {
  const draws = new RandomStream(seed, 'golden');
  let action = GYM_DEFAULT_ACTION;
  return () => {
    const next = { ...action };
    if (draws.uniform() < 0.3) next.batch_size = draws.integer(1, 512);
    if (draws.uniform() < 0.3) next.kv_budget = 0.1 + draws.integer(0, 90) / 100;
    if (draws.uniform() < 0.2) next.spec_length = SPEC_LENGTHS[draws.integer(0, SPEC_LENGTHS.length - 1)];
    if (draws.uniform() < 0.03) next.quant_tier = draws.integer(0, 2) as GymAction['quant_tier'];
    if (draws.uniform() < 0.03) next.prefill_disagg = !next.prefill_disagg;
    action = next;
    return action;
  };
}
