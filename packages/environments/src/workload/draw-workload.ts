import { RandomStream } from '@servegym/simulator';
import { normalProbability } from '@servegym/simulator/statistics';
import type { FittedWorkload } from './fitted-workload.ts';

interface DrawOptions {
  /** Arrivals come this many times as fast; a function says so for each second. Default 1. */
  readonly rateScale?: number | ((second: number) => number);
  /** Prompts are this many times as long. Default 1. */
  readonly promptScale?: number;
}

/** Requests in order of arrival. */
export interface DrawnRequests {
  /** s from the start. */
  readonly arrivalSeconds: readonly number[];
  readonly inputTokens: readonly number[];
  readonly outputTokens: readonly number[];
}

/** Draws `seconds` of traffic. Levels, seconds, arrivals and lengths have a random stream each. */
export function drawWorkload(
  model: FittedWorkload,
  seed: number,
  seconds: number,
  { rateScale = 1, promptScale = 1 }: DrawOptions = {},
): DrawnRequests {
  const { perSecond, levelSeconds, secondShape } = model.arrivals;
  const levels = levelStream(model, seed);
  const factors = new RandomStream(seed, 'second factors');
  const arrivals = new RandomStream(seed, 'arrivals');
  const lengths = new RandomStream(seed, 'lengths');
  const { probabilities, input, output, correlation } = model.lengths;
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  let level = 0;
  for (let second = 0; second < seconds; second++) {
    if (second % levelSeconds === 0) level = levels();
    const factor = secondShape === null ? 1 : gamma(factors, secondShape) / secondShape;
    const scale = typeof rateScale === 'number' ? rateScale : rateScale(second);
    const rate = perSecond * scale * level * factor;
    if (rate <= 0) continue;
    const end = Math.min(1, seconds - second);
    for (let at = arrivals.exponential(1 / rate); at < end; at += arrivals.exponential(1 / rate)) {
      arrivalSeconds.push(second + at);
      const first = lengths.normal();
      const other = correlation * first + Math.sqrt(1 - correlation ** 2) * lengths.normal();
      const prompt = logQuantile(probabilities, input, normalProbability(first));
      inputTokens.push(Math.max(1, Math.round(prompt * promptScale)));
      outputTokens.push(
        Math.max(1, Math.round(logQuantile(probabilities, output, normalProbability(other)))),
      );
    }
  }
  return { arrivalSeconds, inputTokens, outputTokens };
}

/** Levels in a row, relative to the mean rate. Each part of the memory is an autoregressive process of order 1. */
function levelStream({ arrivals }: FittedWorkload, seed: number): () => number {
  const draws = new RandomStream(seed, 'levels');
  const parts = arrivals.memory.map(({ share, seconds }) => ({
    weight: Math.sqrt(share),
    keep: Math.exp(-arrivals.levelSeconds / seconds),
    score: draws.normal(),
  }));
  return () => {
    let score = 0;
    for (const part of parts) {
      score += part.weight * part.score;
      part.score = part.keep * part.score + Math.sqrt(1 - part.keep ** 2) * draws.normal();
    }
    return evenQuantile(arrivals.levels, normalProbability(score));
  };
}

/** Gamma with this shape and scale 1 (Marsaglia and Tsang, 2000). */
function gamma(draws: RandomStream, shape: number): number {
  if (shape < 1) return gamma(draws, shape + 1) * (1 - draws.uniform()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = draws.normal();
    const v = (1 + c * normal) ** 3;
    if (v > 0 && Math.log(1 - draws.uniform()) < normal ** 2 / 2 + d * (1 - v + Math.log(v))) return d * v;
  }
}

/** The value at probability `p` of quantiles tabled at evenly spaced probabilities from 0 to 1, linear between. */
export function evenQuantile(quantiles: readonly number[], p: number): number {
  const at = Math.min(1, Math.max(0, p)) * (quantiles.length - 1);
  const below = Math.min(quantiles.length - 2, Math.floor(at));
  return quantiles[below] + (at - below) * (quantiles[below + 1] - quantiles[below]);
}

/** The value at probability `p` of positive quantiles tabled at `probabilities`, linear in the logarithm between. */
export function logQuantile(
  probabilities: readonly number[],
  quantiles: readonly number[],
  p: number,
): number {
  let low = 0;
  let high = probabilities.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (probabilities[middle] <= p) low = middle;
    else high = middle;
  }
  const share = (p - probabilities[low]) / (probabilities[high] - probabilities[low]);
  return quantiles[low] * (quantiles[high] / quantiles[low]) ** Math.min(1, Math.max(0, share));
}
