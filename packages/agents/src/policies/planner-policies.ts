import { llmserve, type ServeAction, ServeEpisode, type ServeObservation } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import type { Policy, PolicyEpisode, PolicyStep } from '../core/policy.ts';
import { planClairvoyant, UNSURE_BACKLOG_PRICES } from '../planning/plan-clairvoyant.ts';
import { type Alternative, planRecedingHorizon } from '../planning/plan-receding-horizon.ts';
import { ServerEstimate } from '../planning/server-estimate.ts';
import { TrafficBelief } from '../planning/traffic-belief.ts';

/**
 * Planners by what they know of a shifted world: the shifted server and its kinds of traffic; those of the task as it was;
 * or these at first, and then the server as estimated from the windows that it has shown.
 */
export type MpcName = 'mpc' | 'mpc-unshifted' | 'mpc-online';

/**
 * Model-predictive control: keeps a simulated twin of the server, and before each window tries configurations on it,
 * on futures drawn from the traffic seen so far. It knows the task and the requests that have arrived (in the twin also
 * how long their answers will be), and nothing of those to come.
 */
export class MpcPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name: MpcName;
  #twin: ServeEpisode | null = null;
  #estimate: ServerEstimate | null = null;
  #belief: TrafficBelief | null = null;
  readonly #given: readonly ServeAction[] | undefined;
  #configurations: readonly ServeAction[] = [];
  #alternatives: readonly Alternative[] = [];

  /** @param configurations those that are always considered; by default the ones recorded for the task */
  constructor(configurations?: readonly ServeAction[], name: MpcName = 'mpc') {
    this.#given = configurations;
    this.name = name;
  }

  reset({ taskId, seed, resetOptions }: PolicyEpisode): void {
    const world = llmserve.choose({ ...resetOptions, task_id: taskId });
    const { shift: _, profile: __, rate_scale: ___, ...unshifted } = resetOptions ?? {};
    const task = this.name === 'mpc' ? world : llmserve.choose({ ...unshifted, task_id: taskId });
    const requests = llmserve.drawRequests(world, seed);
    this.#twin = new ServeEpisode(task, seed, { requests });
    this.#estimate =
      this.name === 'mpc-online' ? new ServerEstimate(task, seed, requests, findProfile(task.profile)) : null;
    this.#belief = new TrafficBelief(task, requests);
    this.#configurations = this.#given ?? llmserve.anchors.configurations(task);
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
  #keptUp({ previousAction, observation, stepIndex }: PolicyStep<ServeAction, ServeObservation>) {
    const belief = this.#belief;
    if (this.#twin === null || belief === null) throw new TypeError('Expected `reset` before `act`');
    while (this.#twin.window < stepIndex) {
      if (this.#estimate?.see(previousAction, observation)) this.#twin = this.#estimate.twin();
      else this.#twin.step(previousAction);
      belief.observe();
    }
    return { twin: this.#twin, belief };
  }
}

/** Plays the plan of `planClairvoyant`, which knows all traffic to come: no fair opponent, but what others are held against. */
export class OraclePolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'oracle';
  /** The actions of the whole episode, after `reset`. */
  plan: readonly ServeAction[] = [];

  reset({ taskId, seed, resetOptions }: PolicyEpisode): void {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    const requests = llmserve.drawRequests(task, seed);
    const configurations = llmserve.anchors.configurations(task);
    this.plan = planClairvoyant(task, seed, {
      requests,
      configurations,
      ...(!llmserve.anchors.isRecorded(task) && { backlogPrices: UNSURE_BACKLOG_PRICES }),
    }).actions;
  }

  act({ stepIndex }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const action = this.plan[stepIndex];
    if (action === undefined)
      throw new RangeError(`Expected a window of the episode, got window ${stepIndex}`);
    return action;
  }
}
