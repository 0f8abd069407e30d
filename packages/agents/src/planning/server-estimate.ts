import {
  type EpisodeRequests,
  type ServeAction,
  ServeEpisode,
  type ServeObservation,
  type ServeTask,
  scaledProfile,
} from '@servegym/environments';
import type { EngineProfile } from '@servegym/simulator';
import { portableMath } from '@servegym/simulator';

/** A window as the server showed it, and the action that it was played with. */
interface SeenWindow {
  readonly action: ServeAction;
  readonly observation: ServeObservation;
}

/** Logarithms of the factors of the times of a law. */
type TimeFactors = Parameters<typeof scaledProfile>[1];

/** Directions of the search. */
const MOVES: readonly TimeFactors[] = [
  [1, 1, 1],
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];

/** Windows seen at which the law is fitted again: often at first, while little is known. */
const FITS = [1, 2, 3, 5, 8, 12, 18, 26, 36, 50, 70, 95];
/** First steps of the search, by logarithm, and the number of times that they are halved. */
const STEP = 0.5;
const HALVINGS = 3;
/** Errors of a figure beyond this, by logarithm, weigh no more. */
const MOST_ERROR = 1;
/** Weight of a squared factor beside a squared error: a law of which nothing shows stays as it was. */
const PRIOR = 0.02;
/** Weight of the prior's sizes beside a window, GiB^2. */
const RIDGE = 1;
const GIB = 2 ** 30;

/**
 * The profile of a server, estimated from the windows that it has shown: three factors of the times of the law, by replaying
 * the episode on a twin; weights and memory of the GPU, from the memory used at different shares of the KV pool.
 */
export class ServerEstimate {
  profile: EngineProfile;
  readonly #task: ServeTask;
  readonly #seed: number;
  readonly #requests: EpisodeRequests;
  readonly #prior: EngineProfile;
  readonly #seen: SeenWindow[] = [];
  #factors: TimeFactors = [0, 0, 0];

  /**
   * @param prior profile that the server is taken to have at first
   * @param requests traffic of the episode, of which only windows that have been seen are read
   */
  constructor(task: ServeTask, seed: number, requests: EpisodeRequests, prior: EngineProfile) {
    this.#task = task;
    this.#seed = seed;
    this.#requests = requests;
    this.#prior = prior;
    this.profile = prior;
  }

  /** Takes a window into account. True when the estimate has changed. */
  see(action: ServeAction, observation: ServeObservation): boolean {
    this.#seen.push({ action, observation });
    if (!FITS.includes(this.#seen.length)) return false;
    const sized = this.#sized();
    let best = this.#factors;
    let least = this.#error(sized, best);
    for (let halving = 0, step = STEP; halving <= HALVINGS; halving++, step /= 2) {
      for (const move of MOVES) {
        for (const by of [step, -step]) {
          const tried = best.map((factor, i) => factor + by * move[i]!) as unknown as TimeFactors;
          const error = this.#error(sized, tried);
          if (error < least) [least, best] = [error, tried];
        }
      }
    }
    this.#factors = best;
    this.profile = slowed(sized, best);
    return true;
  }

  /** An episode on the estimated server, played as far as has been seen. */
  twin(): ServeEpisode {
    return this.#replayed(this.profile);
  }

  #replayed(profile: EngineProfile, look: (episode: ServeEpisode, window: SeenWindow) => void = () => {}) {
    const episode = new ServeEpisode(this.#task, this.#seed, { requests: this.#requests, profile });
    for (const window of this.#seen) {
      episode.step(window.action);
      look(episode, window);
    }
    return episode;
  }

  /** Mean squared error of the logarithms of latencies and throughput. */
  #error(sized: EngineProfile, factors: TimeFactors): number {
    let sum = 0;
    let figures = 0;
    this.#replayed(slowed(sized, factors), (episode, { observation }) => {
      const predicted = episode.observation();
      for (const figure of ['p50_itl_ms', 'p50_ttft_ms', 'throughput_tps'] as const) {
        if (observation[figure] === 0 || predicted[figure] === 0) continue;
        const error = portableMath.log(predicted[figure] / observation[figure]);
        sum += Math.min(MOST_ERROR, error * error);
        figures++;
      }
    });
    const moved = factors.reduce((sum, factor) => sum + factor * factor, 0);
    return (figures === 0 ? 0 : sum / figures) + (PRIOR * moved) / this.#seen.length;
  }

  /**
   * The prior with weights and memory by least squares over the windows:
   * used = weights + share * (limit - weights - overhead - draft). What one share only leaves open stays near the prior.
   */
  #sized(): EngineProfile {
    const { gpu, memory, speculation } = this.#prior;
    const priorLimit = gpu.memoryGiB * memory.utilization;
    let [aa, ab, bb, ay, by] = [RIDGE, 0, RIDGE, RIDGE, RIDGE];
    for (const [window, { action, observation }] of this.#seen.entries()) {
      const share = action.kv_budget_fraction;
      const draft = action.speculation_depth > 0 ? (speculation?.draftGiB ?? 0) : 0;
      const used = (observation.gpu_memory_used_gb * 1e9) / GIB - this.#requests.tenantGiB[window];
      // In the factors of weights and limit.
      const a = (this.#prior.weights[action.quantization_tier]?.weightGiB ?? 0) * (1 - share);
      const b = share * priorLimit;
      const y = used - (1 - share) * (memory.overheadGiB + draft);
      aa += a * a;
      ab += a * b;
      bb += b * b;
      ay += a * y;
      by += b * y;
    }
    const determinant = aa * bb - ab * ab;
    const scale = Math.max(0.1, (ay * bb - by * ab) / determinant);
    const limit = (priorLimit * (aa * by - ab * ay)) / determinant;
    const smallest = Math.max(
      ...Object.values(this.#prior.weights).map(({ weightGiB }) => scale * weightGiB),
    );
    const memoryGiB = Math.max(limit, smallest + memory.overheadGiB + 1) / memory.utilization;
    const weights = Object.entries(this.#prior.weights).map(
      ([precision, variant]) => [precision, { ...variant, weightGiB: scale * variant.weightGiB }] as const,
    );
    return { ...this.#prior, gpu: { ...gpu, memoryGiB }, weights: Object.fromEntries(weights) };
  }
}

function slowed(profile: EngineProfile, factors: TimeFactors): EngineProfile {
  return scaledProfile(profile, factors.map(portableMath.exp) as unknown as TimeFactors);
}
