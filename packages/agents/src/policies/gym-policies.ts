import { type GymAction, type GymObservation, inferencegym } from '@servegym/environments';
import type { RandomStream } from '@servegym/simulator';
import { ConstantPolicy, catalogue, RandomPolicy } from './catalogue.ts';
import policies from './policies.json' with { type: 'json' };

/** The policies of `inferencegym`. */
export const GYM_POLICIES = catalogue<GymAction, GymObservation>(policies.inferencegym, {
  random: () => new RandomPolicy<GymAction>(drawAction),
  default: () => new ConstantPolicy('default', () => inferencegym.defaultAction),
  baseline: () => new ConstantPolicy('baseline', () => inferencegym.defaultAction),
});

/** Every knob uniformly from its values. */
function drawAction(random: RandomStream): GymAction {
  const depths = inferencegym.bins.spec_length;
  return {
    kv_budget: 0.1 + 0.9 * random.uniform(),
    spec_length: depths[random.integer(0, depths.length - 1)],
    batch_size: random.integer(1, 512),
    prefill_disagg: random.integer(0, 1) === 1,
    quant_tier: random.integer(0, 2) as GymAction['quant_tier'],
  };
}
