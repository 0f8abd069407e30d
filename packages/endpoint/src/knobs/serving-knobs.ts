import { type ServingConfig, WEIGHT_PRECISIONS } from '@servegym/simulator';
import { z } from 'zod';

/** The settings that can change while the endpoint serves, as the admin route writes them. */
export const servingKnobs = z
  .strictObject({
    max_num_seqs: z.int().min(1),
    kv_budget_fraction: z.number().gt(0).max(1),
    speculation_depth: z.int().min(0).max(8),
    weights: z.enum(WEIGHT_PRECISIONS),
    split: z.boolean(),
    scheduling_policy: z.enum(['fcfs', 'priority']),
  })
  .partial();
export type ServingKnobs = Required<z.infer<typeof servingKnobs>>;

export function knobsOf(config: ServingConfig): ServingKnobs {
  return {
    max_num_seqs: config.maxNumSeqs,
    kv_budget_fraction: config.kvBudgetFraction,
    speculation_depth: config.speculationDepth,
    weights: config.weights,
    split: config.split,
    scheduling_policy: config.schedulingPolicy,
  };
}

export function configOf(knobs: ServingKnobs): ServingConfig {
  return {
    maxNumSeqs: knobs.max_num_seqs,
    kvBudgetFraction: knobs.kv_budget_fraction,
    speculationDepth: knobs.speculation_depth,
    weights: knobs.weights,
    split: knobs.split,
    schedulingPolicy: knobs.scheduling_policy,
  };
}
