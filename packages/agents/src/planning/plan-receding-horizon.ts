import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeEpisodeSnapshot,
} from '@servegym/environments';
import { distinctActions, modeOf, neighboursOf } from './knob-grid.ts';
import { backlogCost, meanWindowTokens } from './plan-clairvoyant.ts';
import type { TrafficBelief } from './traffic-belief.ts';

export interface RecedingHorizonOptions {
  /** Configurations that are always considered; their masked knobs are held. */
  readonly configurations: readonly ServeAction[];
  /** Windows that a configuration is tried for. Default 10: enough to repay a reload. */
  readonly horizon?: number;
  /** Futures that the best configurations are tried on; all are tried on the first. Default 3. */
  readonly futures?: number;
  /** Configurations that are tried on all futures. Default 5. */
  readonly finalists?: number;
  /** Reward a window that a reload or a drain must gain to be worth it: it will have to be undone. Default 0.05. */
  readonly hesitation?: number;
}

/** A configuration that was considered, and what keeping it over the horizon was found to earn. */
export interface Alternative {
  readonly action: ServeAction;
  /**
   * Mean reward a window over the sampled futures, less what the backlog at their end will cost and, where it takes a
   * reload or a drain, the hesitation.
   */
  readonly value: number;
}

const DEFAULTS = { horizon: 10, futures: 3, finalists: 5, hesitation: 0.05 };
/** Seeds the acceptance of drafts in sampled futures, which is not that of the episode. */
const OTHER_DRAFTS = 0x5eed;

/**
 * Plans the next action of an episode whose future is not known: every alternative is kept over the horizon on futures drawn
 * from what has been seen, from the state that the server is in, so that a change is charged with what it costs. Answers
 * the alternatives, best first.
 * @param episode played up to now; left as it is
 */
export function planRecedingHorizon(
  episode: ServeEpisode,
  belief: TrafficBelief,
  options: RecedingHorizonOptions,
): Alternative[] {
  const { horizon, futures, finalists, hesitation } = { ...DEFAULTS, ...options };
  const { task, window, action: inForce, seed } = episode;
  const start = episode.snapshot();
  const meanTokens = meanWindowTokens(episode);
  const moves = window === 0 ? [] : neighboursOf(inForce, llmserve.activeKnobs(task));
  const given = options.configurations.map((action) => holdMaskedKnobs(task, action));
  const tries = distinctActions([inForce, ...given, ...moves]).map(
    (action) => new Trial(action, modeOf(action) === modeOf(inForce) ? 0 : hesitation),
  );
  let candidates = tries;
  for (let future = 0; future < futures; future++) {
    const requests = belief.sampleFuture(horizon, mixed(seed, window, future));
    const imagined = new ServeEpisode(task, seed + OTHER_DRAFTS, { requests, profile: episode.profile });
    for (const trial of candidates) trial.play(imagined, start, horizon, meanTokens);
    candidates = candidates.toSorted((a, b) => b.value - a.value).slice(0, finalists);
  }
  const rest = tries.filter((trial) => !candidates.includes(trial)).sort((a, b) => b.value - a.value);
  return [...candidates, ...rest].map(({ action, value }) => ({ action, value }));
}

class Trial {
  readonly action: ServeAction;
  readonly #hesitation: number;
  #sum = 0;
  #futures = 0;

  constructor(action: ServeAction, hesitation: number) {
    this.action = action;
    this.#hesitation = hesitation;
  }

  get value(): number {
    return this.#sum / this.#futures - this.#hesitation;
  }

  play(imagined: ServeEpisode, start: ServeEpisodeSnapshot, horizon: number, meanTokens: number): void {
    imagined.restore(start);
    const end = Math.min(start.window + horizon, imagined.task.windows);
    let sum = 0;
    while (imagined.window < end) sum += imagined.step(this.action);
    sum -= backlogCost(imagined, meanTokens);
    this.#sum += sum / (end - start.window);
    this.#futures++;
  }
}

/** A seed for each (episode, window, future). */
function mixed(seed: number, window: number, future: number): number {
  return ((seed % 0x3fffffff) * 1024 + window) * 16 + future;
}
