import {
  chooseTask,
  drawRequests,
  isRecordedTask,
  referenceConfigurations,
  type ServeAction,
  ServeEpisode,
  type ServeObservation,
} from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../../core/policy.ts';
import { planClairvoyant, UNSURE_BACKLOG_PRICES } from '../planning/plan-clairvoyant.ts';
import { type Alternative, planRecedingHorizon } from '../planning/plan-receding-horizon.ts';
import { TrafficBelief } from '../planning/traffic-belief.ts';

/**
 * Model-predictive control: keeps a simulated twin of the server, and before each window tries configurations on it,
 * on futures drawn from the traffic seen so far. It knows the task and the requests that have arrived (in the twin also
 * how long their answers will be), and nothing of those to come.
 */
export class MpcPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name: string;
  readonly #told: boolean;
  #twin: ServeEpisode | null = null;
  #belief: TrafficBelief | null = null;
  readonly #given: readonly ServeAction[] | undefined;
  #configurations: readonly ServeAction[] = [];
  #alternatives: readonly Alternative[] = [];

  /**
   * @param configurations those that are always considered; by default the ones recorded for the task
   * @param told whether the twin is the shifted server and knows its kinds of traffic, or those of the task as it was
   */
  constructor(configurations?: readonly ServeAction[], told = true) {
    this.#given = configurations;
    this.#told = told;
    this.name = told ? 'mpc' : 'mpc-unshifted';
  }

  reset({ taskId, seed, resetOptions }: PolicyEpisode): void {
    const world = chooseTask({ ...resetOptions, task_id: taskId });
    const { shift: _, profile: __, rate_scale: ___, ...unshifted } = resetOptions ?? {};
    const task = this.#told ? world : chooseTask({ ...unshifted, task_id: taskId });
    this.#twin = new ServeEpisode(task, seed, { requests: drawRequests(world, seed) });
    this.#belief = new TrafficBelief(task, this.#twin.requests);
    this.#configurations = this.#given ?? referenceConfigurations(task);
    this.#alternatives = [];
  }

  act(step: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const { twin, belief } = this.#keptUp(step);
    this.#alternatives = planRecedingHorizon(twin, belief, { configurations: this.#configurations });
    return this.#alternatives[0].action;
  }

  /** Keeps the twin up with windows that somebody else plays; there is nothing to plan for them. */
  watch(step: PolicyStep<ServeAction, ServeObservation>): void {
    this.#keptUp(step);
  }

  /** Alternatives for the last action, best first. */
  explain(): { readonly alternatives: readonly Alternative[] } {
    return { alternatives: this.#alternatives };
  }

  /** The twin and what is believed of the traffic, after the windows played so far. */
  #keptUp({ previousAction, stepIndex }: PolicyStep<ServeAction, ServeObservation>) {
    const twin = this.#twin;
    const belief = this.#belief;
    if (twin === null || belief === null) throw new TypeError('Expected `reset` before `act`');
    while (twin.window < stepIndex) {
      twin.step(previousAction);
      belief.observe();
    }
    return { twin, belief };
  }
}

/** Plays the plan of `planClairvoyant`, which knows all traffic to come: no fair opponent, but what others are held against. */
export class OraclePolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'oracle';
  /** The actions of the whole episode, after `reset`. */
  plan: readonly ServeAction[] = [];

  reset({ taskId, seed, resetOptions }: PolicyEpisode): void {
    const task = chooseTask({ ...resetOptions, task_id: taskId });
    const requests = drawRequests(task, seed);
    const configurations = referenceConfigurations(task);
    this.plan = planClairvoyant(task, seed, {
      requests,
      configurations,
      ...(!isRecordedTask(task) && { backlogPrices: UNSURE_BACKLOG_PRICES }),
    }).actions;
  }

  act({ stepIndex }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const action = this.plan[stepIndex];
    if (action === undefined)
      throw new RangeError(`Expected a window of the episode, got window ${stepIndex}`);
    return action;
  }
}
