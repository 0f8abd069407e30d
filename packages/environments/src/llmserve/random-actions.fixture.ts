import fc from 'fast-check';
import { QUANTIZATION_TIERS, type ServeAction } from './schema.ts';

/** Any valid action. */
export const anyAction: fc.Arbitrary<ServeAction> = fc.record({
  batch_cap: fc.integer({ min: 1, max: 512 }),
  kv_budget_fraction: fc.double({ min: 0.1, max: 1, noNaN: true }),
  speculation_depth: fc.integer({ min: 0, max: 8 }),
  quantization_tier: fc.constantFrom(...QUANTIZATION_TIERS),
  prefill_decode_split: fc.boolean(),
  priority_routing: fc.boolean(),
});
