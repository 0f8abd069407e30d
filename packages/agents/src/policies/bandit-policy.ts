import { holdMaskedKnobs, llmserve, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { Policy, PolicyStep } from '../core/policy.ts';
import { distinctActions } from '../planning/plan-clairvoyant.ts';
import { EpisodePolicy } from './catalogue.ts';

/** Windows that a configuration is kept for: what it changes shows over some. */
const HOLD = 4;
/** Weight that a hold loses with each later one: traffic changes, about ten holds are remembered. */
const DISCOUNT = 0.9;
/** Width of the confidence bound. Rewards of neighbouring configurations differ by hundredths. */
const EXPLORATION = 0.05;
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
 * Tries configurations while it serves, around the best one that never changes, and comes back to what paid under such a
 * load: discounted upper confidence bounds, kept apart for busy and quiet windows. It changes no knob that costs a reload
 * or a drain: with some thirty trials in an episode, those would never be repaid.
 * Garivier and Moulines, "On Upper-Confidence Bound Policies for Non-Stationary Bandit Problems", ALT 2011.
 * @param given configurations to try; by default the best constant of the task, and what is a free step from it
 */
export function banditPolicy(given?: readonly ServeAction[]): Policy<ServeAction, ServeObservation> {
  return new EpisodePolicy('bandit', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    const configurations = given ?? freeVariations(llmserve.anchors.configurations(task)[0]);
    const arms = distinctActions(configurations.map((action) => holdMaskedKnobs(task, action)));
    const bandit = new Bandit(arms);
    return (step) => bandit.act(step);
  });
}

/** The bandit of one episode. */
class Bandit {
  readonly #arms: readonly ServeAction[];
  /** For quiet and for busy windows, one for each arm. */
  readonly #tallies: readonly (readonly Tally[])[];
  #arm = 0;
  #held = 0;
  #earned = 0;
  #isBusy = false;
  #slowLoad = Number.NaN;

  constructor(arms: readonly ServeAction[]) {
    this.#arms = arms;
    this.#tallies = [0, 1].map(() => arms.map(() => ({ holds: 0, rewards: 0 })));
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
    return this.#arms[this.#arm];
  }

  /** Puts down what the last hold earned. */
  #settle(): void {
    for (const tally of this.#tallies.flat()) {
      tally.holds *= DISCOUNT;
      tally.rewards *= DISCOUNT;
    }
    const tally = this.#tallies[Number(this.#isBusy)][this.#arm];
    tally.holds++;
    tally.rewards += this.#earned / this.#held;
    this.#held = 0;
    this.#earned = 0;
  }

  #choose(isBusy: boolean): number {
    const [here, elsewhere] = [this.#tallies[Number(isBusy)], this.#tallies[Number(!isBusy)]];
    const known = here.map((tally, arm) => {
      const other = elsewhere[arm];
      const weight = other.holds > 0 ? OTHER_LOADS_WEIGHT / other.holds : 0;
      return { holds: tally.holds + weight * other.holds, rewards: tally.rewards + weight * other.rewards };
    });
    const total = known.reduce((sum, { holds }) => sum + holds, 0);
    const bound = ({ holds, rewards }: Tally) =>
      holds === 0 ? Infinity : rewards / holds + EXPLORATION * Math.sqrt(Math.log(1 + total) / holds);
    let best = 0;
    for (let arm = 1; arm < known.length; arm++) if (bound(known[arm]) > bound(known[best])) best = arm;
    return best;
  }
}

/** A configuration, and those a step of one knob away that a running server takes over at once. */
function freeVariations(action: ServeAction): ServeAction[] {
  const { batch_cap, kv_budget_fraction, speculation_depth, priority_routing } = action;
  return [
    action,
    { ...action, batch_cap: Math.min(512, 2 * batch_cap) },
    { ...action, batch_cap: Math.max(1, Math.round(batch_cap / 2)) },
    { ...action, kv_budget_fraction: Math.min(1, 1.5 * kv_budget_fraction) },
    { ...action, kv_budget_fraction: Math.max(0.1, kv_budget_fraction / 1.5) },
    { ...action, speculation_depth: Math.min(8, speculation_depth + 1) },
    { ...action, speculation_depth: Math.max(0, speculation_depth - 1) },
    { ...action, priority_routing: !priority_routing },
  ];
}
