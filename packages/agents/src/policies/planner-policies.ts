import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeEpisodeSnapshot,
  type ServeObservation,
  serverOf,
} from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../core/policy.ts';
import {
  backlogCost,
  distinctActions,
  meanWindowTokens,
  modeOf,
  neighboursOf,
  otherModes,
  planClairvoyant,
  UNSURE_BACKLOG_PRICES,
} from '../planning/plan-clairvoyant.ts';
import { TrafficBelief } from '../planning/traffic-belief.ts';

/** Windows that a configuration is tried for: enough to repay a reload. */
const HORIZON = 10;
/** Futures that the best configurations are tried on; all are tried on the first. */
const FUTURES = 3;
/** Configurations that are tried on all futures. */
const FINALISTS = 5;
/** Reward a window that a reload or a drain must gain to be worth it: it will have to be undone. */
const HESITATION = 0.05;

/** A configuration that was considered, and what keeping it over the horizon was found to earn. */
export interface Alternative {
  readonly action: ServeAction;
  /**
   * Mean reward a window over the sampled futures, less what the backlog at their end will cost and, where it takes a
   * reload or a drain, the hesitation.
   */
  readonly value: number;
}

/** Seeds the acceptance of drafts in sampled futures, which is not that of the episode. */
const OTHER_DRAFTS = 0x5eed;

/**
 * Plans the next action of an episode whose future is not known: every alternative is kept over the horizon on futures drawn
 * from what has been seen, from the state that the server is in, so that a change is charged with what it costs. Answers
 * the alternatives, best first.
 * @param episode played up to now; left as it is
 * @param configurations those that are always considered; their masked knobs are held
 */
function planRecedingHorizon(
  episode: ServeEpisode,
  belief: TrafficBelief,
  configurations: readonly ServeAction[],
): Alternative[] {
  const { task, window, action: inForce, seed } = episode;
  const start = episode.snapshot();
  const meanTokens = meanWindowTokens(episode);
  const knobs = llmserve.activeKnobs(task);
  const moves = window === 0 ? [] : [...neighboursOf(inForce, knobs), ...otherModes(inForce, knobs)];
  // Before the first window nothing is known of traffic that no phases describe: imagined, it would be none.
  const isUnknown = window === 0 && task.source !== undefined;
  const given = isUnknown ? [] : configurations.map((action) => holdMaskedKnobs(task, action));
  const tries = distinctActions([inForce, ...given, ...moves]).map((action) => ({
    action,
    sum: 0,
    value: 0,
  }));
  let candidates = tries;
  for (let future = 0; future < FUTURES; future++) {
    const requests = belief.sampleFuture(HORIZON, mixed(seed, window, future));
    const imagined = new ServeEpisode(task, seed + OTHER_DRAFTS, { requests, profile: episode.profile });
    for (const trial of candidates) {
      trial.sum += keptOver(imagined, start, trial.action, meanTokens);
      const hesitation = modeOf(trial.action) === modeOf(inForce) ? 0 : HESITATION;
      trial.value = trial.sum / (future + 1) - hesitation;
    }
    candidates = candidates.toSorted((a, b) => b.value - a.value).slice(0, FINALISTS);
  }
  const rest = tries.filter((trial) => !candidates.includes(trial)).sort((a, b) => b.value - a.value);
  return [...candidates, ...rest].map(({ action, value }) => ({ action, value }));
}

/** Mean reward a window of an action that is kept over the horizon, less what the backlog at its end will cost. */
function keptOver(
  imagined: ServeEpisode,
  start: ServeEpisodeSnapshot,
  action: ServeAction,
  meanTokens: number,
) {
  imagined.restore(start);
  const end = Math.min(start.window + HORIZON, imagined.task.windows);
  let sum = 0;
  while (imagined.window < end) sum += imagined.step(action);
  sum -= backlogCost(imagined, meanTokens);
  return sum / (end - start.window);
}

/** A seed for each (episode, window, future). */
function mixed(seed: number, window: number, future: number): number {
  return ((seed % 0x3fffffff) * 1024 + window) * 16 + future;
}

/** Planners by what they know of a shifted world: the shifted server and its kinds of traffic, or those of the task as it was. */
export type MpcName = 'mpc' | 'mpc-unshifted';

/**
 * Model-predictive control: keeps a simulated twin of the server, and before each window tries configurations on it,
 * on futures drawn from the traffic seen so far. It knows the task and the requests that have arrived (in the twin also
 * how long their answers will be), and nothing of those to come. Where the server has no profile, the twin is the server
 * that `observation.server` describes, anew whenever that changes.
 */
export class MpcPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name: MpcName;
  readonly #given: readonly ServeAction[] | undefined;
  #episode: TwinnedEpisode | undefined;
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
    this.#episode = {
      twin: new ServeEpisode(task, seed, { requests }),
      belief: new TrafficBelief(task, requests),
      configurations: this.#given ?? llmserve.anchors.configurations(task),
      ...{ played: [], described: '' },
    };
    this.#alternatives = [];
  }

  act(step: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const { twin, belief, configurations } = this.#keptUp(step);
    this.#alternatives = planRecedingHorizon(twin, belief, configurations);
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

  /** The episode after the windows played so far. */
  #keptUp({ previousAction, observation, stepIndex }: PolicyStep<ServeAction, ServeObservation>) {
    const episode = this.#episode;
    if (episode === undefined) throw new TypeError('Expected `reset` before `act`');
    while (episode.twin.window < stepIndex) {
      episode.played.push(previousAction);
      episode.twin.step(previousAction);
      episode.belief.observe();
    }
    const { task, seed, requests } = episode.twin;
    const described = JSON.stringify(observation.server);
    if (task.serverFrom !== undefined && described !== episode.described) {
      const profile = llmserve.describedProfile(task, serverOf(task), observation.server);
      episode.twin = new ServeEpisode(task, seed, { requests, profile });
      for (const action of episode.played) episode.twin.step(action);
      episode.described = described;
    }
    return episode;
  }
}

/** An episode on the simulated twin, with what is believed of the traffic. */
interface TwinnedEpisode {
  twin: ServeEpisode;
  readonly belief: TrafficBelief;
  readonly configurations: readonly ServeAction[];
  readonly played: ServeAction[];
  /** The server that the twin was made for. */
  described: string;
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
