import { portableMath, randomBits, randomUniform, streamKey, subKey, subKeyBits } from '@servegym/simulator';
import { inverseNormal } from '@servegym/simulator/statistics';
import type { GymTask, PromptDistribution } from './gym-tasks.ts';
import { EPISODE_STEPS, type Phase } from './schema.ts';

const BITS = 12;
const ENTRIES = 2 ** BITS;

/** Draws from a distribution by a table of its quantiles: a draw is one lookup. */
class QuantileTable {
  readonly #values: Float64Array;

  constructor(quantile: (probability: number) => number) {
    this.#values = Float64Array.from({ length: ENTRIES }, (_, i) => quantile((i + 0.5) / ENTRIES));
  }

  /** The value that 32 random bits stand for. */
  draw(bits: number): number {
    return this.#values[bits >>> (32 - BITS)];
  }
}

/** Prompt lengths of a task, whole tokens. */
function promptQuantiles({ prompts }: Pick<GymTask, 'prompts'>): QuantileTable {
  return new QuantileTable((probability) => {
    let rest = probability;
    for (const { share, lengths } of prompts) {
      if (rest < share) return promptAt(lengths, rest / share);
      rest -= share;
    }
    return promptAt(prompts[prompts.length - 1].lengths, 1);
  });
}

/** Requests that arrive in a step of a Poisson process. */
function poissonQuantiles(mean: number): QuantileTable {
  return new QuantileTable((probability) => {
    let count = 0;
    let term = portableMath.exp(-mean);
    let below = term;
    while (below < probability && count < 10 * mean + 100) {
      count++;
      term *= mean / count;
      below += term;
    }
    return count;
  });
}

/** Standard normal, for jitter. */
const normalQuantiles: QuantileTable = new QuantileTable(inverseNormal);

function promptAt(lengths: PromptDistribution, probability: number): number {
  const { from, to } = lengths;
  if (lengths.kind === 'uniform') return Math.min(to, from + Math.floor(probability * (to - from + 1)));
  const drawn = Math.round(portableMath.exp(lengths.mu + lengths.sigma * inverseNormal(probability)));
  return Math.min(to, Math.max(from, drawn));
}

const WARMUP_STEPS = 10;
const COOLDOWN_STEPS = 10;
/** Standard deviation of the jitter on latencies. */
const JITTER = 0.05;
/** Bits of a request's number that draw its class. */
const CLASS_BITS = 0xfffff;
/** Sources of jitter: streams of their own. */
export const TTFT_JITTER = 0;
export const TPOT_JITTER = 1;

const drawsOf = new WeakMap<GymTask, ReturnType<typeof distributionsOf>>();

function distributionsOf(task: GymTask) {
  return {
    prompts: promptQuantiles(task),
    calm: poissonQuantiles(task.arrivalRate),
    burst: poissonQuantiles(task.bursts?.rate ?? task.arrivalRate),
  };
}

/**
 * Draws arrivals, prompts, classes and the jitter of latencies: all by (task, seed, step, request), so
 * that nothing has to be kept and no draw shifts another.
 */
export class GymWorkload {
  readonly task: GymTask;
  readonly #draws: ReturnType<typeof distributionsOf>;
  readonly #arrivalsKey: number;
  readonly #requestsKey: number;
  readonly #ranksKey: number;
  readonly #jitterKey: number;
  /** Of the step that was turned to. */
  #requests = 0;
  #ranks = 0;
  /** Step at which the first burst begins. */
  readonly #firstBurst: number;
  /** Share of interactive requests, and of those and batch requests. */
  readonly #upToInteractive: number;
  readonly #upToBatch: number;

  constructor(task: GymTask, seed: number) {
    this.task = task;
    this.#draws = drawsOf.get(task) ?? distributionsOf(task);
    drawsOf.set(task, this.#draws);
    this.#arrivalsKey = streamKey(seed, 'arrivals');
    this.#requestsKey = streamKey(seed, 'requests');
    this.#ranksKey = streamKey(seed, 'ranks');
    this.#jitterKey = streamKey(seed, 'jitter');
    const { bursts, classShares } = task;
    this.#upToInteractive = classShares[0];
    this.#upToBatch = classShares[0] + classShares[1];
    const latest = bursts === null ? 0 : Math.min(bursts.period, EPISODE_STEPS - bursts.steps);
    const drawn = randomUniform(streamKey(seed, 'bursts'), 0, 0);
    this.#firstBurst = WARMUP_STEPS + Math.floor(drawn * (latest - WARMUP_STEPS));
  }

  isBurst(step: number): boolean {
    const { bursts } = this.task;
    return (
      bursts !== null && step >= this.#firstBurst && (step - this.#firstBurst) % bursts.period < bursts.steps
    );
  }

  phase(step: number): Phase {
    if (this.isBurst(step)) return 'burst';
    const { bursts } = this.task;
    if (bursts !== null && step > this.#firstBurst) {
      if (((step - this.#firstBurst) % bursts.period) - bursts.steps < COOLDOWN_STEPS) return 'cooldown';
    }
    return step < WARMUP_STEPS ? 'warmup' : 'steady';
  }

  arrivals(step: number): number {
    const counts = this.isBurst(step) ? this.#draws.burst : this.#draws.calm;
    return counts.draw(randomBits(this.#arrivalsKey, step, 0));
  }

  /** Turns to the requests of a step. */
  turnTo(step: number): void {
    this.#requests = subKey(this.#requestsKey, step);
    this.#ranks = subKey(this.#ranksKey, step);
  }

  /** Prompt of the i-th arrival of the step, tokens. */
  promptTokens(i: number): number {
    return this.#draws.prompts.draw(subKeyBits(this.#requests, i));
  }

  /** Class of the i-th arrival of the step: 0 interactive, 1 batch, 2 best effort. */
  classOf(i: number): number {
    const upToInteractive = this.#upToInteractive;
    if (upToInteractive === 1) return 0;
    // The prompt is drawn by the upper bits of the same number.
    const drawn = (subKeyBits(this.#requests, i) & CLASS_BITS) / (CLASS_BITS + 1);
    if (drawn < upToInteractive) return 0;
    return drawn < this.#upToBatch ? 1 : 2;
  }

  /** Rank of the i-th request served in the step among its like, 0 (quickest) to 1. */
  rank(i: number): number {
    return (subKeyBits(this.#ranks, i) >>> 0) * 2 ** -32;
  }

  /** Factor on the latencies of a step. */
  jitter(step: number, source: number): number {
    return 1 + JITTER * normalQuantiles.draw(randomBits(this.#jitterKey, step, source));
  }
}
