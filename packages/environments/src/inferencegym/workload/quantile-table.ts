import { inverseNormal } from '@servegym/simulator/statistics';
import type { GymTask, PromptDistribution } from '../tasks/gym-task.ts';

const BITS = 12;
const ENTRIES = 2 ** BITS;

/** Draws from a distribution by a table of its quantiles: a draw is one lookup. */
export class QuantileTable {
  private readonly values: Float64Array;

  constructor(quantile: (probability: number) => number) {
    this.values = Float64Array.from({ length: ENTRIES }, (_, i) => quantile((i + 0.5) / ENTRIES));
  }

  /** The value that 32 random bits stand for. */
  draw(bits: number): number {
    return this.values[bits >>> (32 - BITS)];
  }
}

/** Prompt lengths of a task, whole tokens. */
export function promptQuantiles({ prompts }: Pick<GymTask, 'prompts'>): QuantileTable {
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
export function poissonQuantiles(mean: number): QuantileTable {
  return new QuantileTable((probability) => {
    let count = 0;
    let term = Math.exp(-mean);
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
export const normalQuantiles: QuantileTable = new QuantileTable(inverseNormal);

function promptAt(lengths: PromptDistribution, probability: number): number {
  const { from, to } = lengths;
  if (lengths.kind === 'uniform') return Math.min(to, from + Math.floor(probability * (to - from + 1)));
  const drawn = Math.round(Math.exp(lengths.mu + lengths.sigma * inverseNormal(probability)));
  return Math.min(to, Math.max(from, drawn));
}
