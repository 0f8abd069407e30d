import { type GymAction, type GymObservation, inferencegym } from '@servegym/environments';
import { ConstantPolicy, type PolicyEntry, RandomPolicy } from './catalogue.ts';

/** The policies of `inferencegym`. */
export const GYM_POLICIES: readonly PolicyEntry<GymAction, GymObservation>[] = [
  {
    name: 'random',
    title: 'Random',
    description: 'Draws every knob uniformly from its values, anew for every step.',
    create: () =>
      new RandomPolicy<GymAction>((random) => ({
        kv_budget: 0.1 + 0.9 * random.uniform(),
        spec_length:
          inferencegym.bins.spec_length[random.integer(0, inferencegym.bins.spec_length.length - 1)],
        batch_size: random.integer(1, 512),
        prefill_disagg: random.integer(0, 1) === 1,
        quant_tier: random.integer(0, 2) as GymAction['quant_tier'],
      })),
  },
  {
    name: 'default',
    title: 'Default configuration',
    description: 'Keeps the default action: batch 32, the whole KV budget, FP16.',
    create: () => new ConstantPolicy('default', () => inferencegym.defaultAction),
  },
  {
    name: 'baseline',
    title: 'Baseline agent',
    description: 'The fixed baseline agent of InferenceGym, which keeps the default action.',
    create: () => new ConstantPolicy('baseline', () => inferencegym.defaultAction),
  },
];
