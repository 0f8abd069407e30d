import type { ServeAction, ServeObservation } from '@servegym/environments';
import { defaultActionOf } from '../llmserve/default-action.ts';
import type { Policy, PolicyEpisode, PolicyStep } from '../policy.ts';

/** What an operator would try, beside the configuration that the task starts with. */
const PRESETS: readonly ServeAction[] = [
  // Tokens as fast as they can be had, for chat: drafts, a small batch, a small pool.
  preset(48, 0.2, 3, 'INT8', false, true),
  // Quality first.
  preset(64, 0.4, 4, 'FP16', false, true),
  // Every token of capacity, for crowds.
  preset(256, 0.6, 0, 'INT8', false, true),
  // Memory for long prompts, and decodes that they do not hold up.
  preset(128, 0.6, 0, 'INT8', true, true),
  // In between.
  preset(128, 0.4, 2, 'INT8', false, false),
];

/** Windows that a configuration is kept for: a change of weights costs most of one. */
const HOLD = 4;
/** What a hold is worth less with each one since: traffic changes, about ten holds are remembered. */
const DISCOUNT = 0.9;
/** Width of the confidence bound. Rewards of a good and a bad configuration differ by a few tenths. */
const EXPLORATION = 0.15;
/** Holds that what is known of a configuration at other loads counts as. */
const OTHER_LOADS_WEIGHT = 0.3;
/** Weight of a window in the slow average that tells a busy window from a quiet one. */
const SLOW_WEIGHT = 0.1;

/** Discounted count and sum of rewards. */
interface Tally {
  holds: number;
  rewards: number;
}

/**
 * Tries a handful of configurations while it serves, and comes back to what paid under such a load: discounted upper
 * confidence bounds, kept apart for busy and quiet windows. Nothing is learned beforehand.
 * Garivier and Moulines, "On Upper-Confidence Bound Policies for Non-Stationary Bandit Problems", ALT 2011.
 */
export class BanditPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'bandit';
  #arms: readonly ServeAction[] = PRESETS;
  /** For quiet and for busy windows, one for each arm. */
  #tallies: readonly (readonly Tally[])[] = [];
  #arm = 0;
  #held = 0;
  #earned = 0;
  #isBusy = false;
  #slowLoad = Number.NaN;

  reset({ taskId }: PolicyEpisode): void {
    this.#arms = [defaultActionOf(taskId), ...PRESETS];
    this.#tallies = [0, 1].map(() => this.#arms.map(() => ({ holds: 0, rewards: 0 })));
    this.#arm = 0;
    this.#held = 0;
    this.#earned = 0;
    this.#isBusy = false;
    this.#slowLoad = Number.NaN;
  }

  act({ observation, reward }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const load = Math.log1p(observation.request_arrival_rate * observation.mean_prompt_length);
    if (reward !== null) {
      this.#earned += reward;
      this.#held++;
      this.#slowLoad = Number.isNaN(this.#slowLoad)
        ? load
        : this.#slowLoad + SLOW_WEIGHT * (load - this.#slowLoad);
    }
    const isBusy = load > this.#slowLoad;
    if (this.#held >= HOLD || (this.#held > 0 && isBusy !== this.#isBusy)) {
      this.#settle();
      this.#arm = this.#choose(isBusy);
    }
    this.#isBusy = isBusy;
    return this.#arms[this.#arm]!;
  }

  /** Puts down what the last hold earned. */
  #settle(): void {
    for (const tally of this.#tallies.flat()) {
      tally.holds *= DISCOUNT;
      tally.rewards *= DISCOUNT;
    }
    const tally = this.#tallies[Number(this.#isBusy)]![this.#arm]!;
    tally.holds++;
    tally.rewards += this.#earned / this.#held;
    this.#held = 0;
    this.#earned = 0;
  }

  #choose(isBusy: boolean): number {
    const [here, elsewhere] = [this.#tallies[Number(isBusy)]!, this.#tallies[Number(!isBusy)]!];
    const known = here.map((tally, arm) => {
      const other = elsewhere[arm]!;
      const weight = other.holds > 0 ? OTHER_LOADS_WEIGHT / other.holds : 0;
      return { holds: tally.holds + weight * other.holds, rewards: tally.rewards + weight * other.rewards };
    });
    const total = known.reduce((sum, { holds }) => sum + holds, 0);
    const bound = ({ holds, rewards }: Tally) =>
      holds === 0 ? Infinity : rewards / holds + EXPLORATION * Math.sqrt(Math.log(1 + total) / holds);
    let best = 0;
    for (let arm = 1; arm < known.length; arm++) if (bound(known[arm]!) > bound(known[best]!)) best = arm;
    return best;
  }
}

function preset(
  batch_cap: number,
  kv_budget_fraction: number,
  speculation_depth: number,
  quantization_tier: ServeAction['quantization_tier'],
  prefill_decode_split: boolean,
  priority_routing: boolean,
): ServeAction {
  return {
    batch_cap,
    kv_budget_fraction,
    speculation_depth,
    quantization_tier,
    prefill_decode_split,
    priority_routing,
  };
}
