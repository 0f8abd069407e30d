import { QUANTIZATION_TIERS, type ServeAction, type ServeObservation } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../policy.ts';

/** Draws every knob uniformly from its range, anew for every window. */
export class RandomPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'random';
  #random = new RandomStream(0, 'random policy');

  reset({ seed }: PolicyEpisode): void {
    this.#random = new RandomStream(seed, 'random policy');
  }

  act(): ServeAction {
    const random = this.#random;
    return {
      batch_cap: random.integer(1, 512),
      kv_budget_fraction: 0.1 + 0.9 * random.uniform(),
      speculation_depth: random.integer(0, 8),
      quantization_tier: QUANTIZATION_TIERS[random.integer(0, QUANTIZATION_TIERS.length - 1)]!,
      prefill_decode_split: random.integer(0, 1) === 1,
      priority_routing: random.integer(0, 1) === 1,
    };
  }
}
