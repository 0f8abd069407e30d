import {
  holdMaskedKnobs,
  QUANTIZATION_TIERS,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../../core/policy.ts';
import { knownTask } from '../known-task.ts';

/** Draws every active knob uniformly from its range, anew for every window. */
export class RandomPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'random';
  #task: ServeTask | null = null;
  #random = new RandomStream(0, 'random policy');

  reset({ taskId, seed }: PolicyEpisode): void {
    this.#task = knownTask(taskId);
    this.#random = new RandomStream(seed, 'random policy');
  }

  act(): ServeAction {
    const random = this.#random;
    if (this.#task === null) throw new TypeError('Expected `reset` before `act`');
    return holdMaskedKnobs(this.#task, {
      batch_cap: random.integer(1, 512),
      kv_budget_fraction: 0.1 + 0.9 * random.uniform(),
      speculation_depth: random.integer(0, 8),
      quantization_tier: QUANTIZATION_TIERS[random.integer(0, QUANTIZATION_TIERS.length - 1)],
      prefill_decode_split: random.integer(0, 1) === 1,
      priority_routing: random.integer(0, 1) === 1,
    });
  }
}
