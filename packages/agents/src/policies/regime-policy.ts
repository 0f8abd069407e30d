import { holdMaskedKnobs, llmserve, type ServeAction, type ServeObservation } from '@servegym/environments';
import { z } from 'zod';
import type { Policy } from '../core/policy.ts';
import { knownTask, requireTask } from '../learning/trained-for.ts';
import { EpisodePolicy } from './catalogue.ts';

/** A configuration for each regime of traffic, one or more. */
export const regimesSchema = z
  .array(
    z.object({
      /** Center of the regime: ln(1 + arrivals a second), ln(1 + mean prompt, tokens). */
      center: z.object({ arrivals: z.number(), prompts: z.number() }),
      action: llmserve.actionSchema,
    }),
  )
  .min(1);
export type Regimes = Readonly<z.infer<typeof regimesSchema>>;
export type RegimeCenter = Regimes[number]['center'];

/**
 * Tells regimes of traffic apart, and keeps a configuration for each. Its reset throws EnvironmentError `OTHER_TASK` for
 * another task than the regimes were searched for.
 */
export function regimePolicy(ownTask: string, regimes: Regimes): Policy<ServeAction, ServeObservation> {
  return new EpisodePolicy('cem', ({ taskId }) => {
    requireTask(ownTask, taskId);
    const task = knownTask(llmserve, ownTask);
    const tracker = new RegimeTracker(regimes.map(({ center }) => center));
    return ({ observation }) => holdMaskedKnobs(task, regimes[tracker.see(observation)].action);
  });
}

/** Weight of the last window in what the traffic is taken to be: a regime shows within two windows. */
const NEW_WEIGHT = 0.6;
/** Prompt lengths differ by more than arrival rates do: both are made to weigh about the same. */
const PROMPT_WEIGHT = 0.5;

/** Says which regime the traffic is in: that with the nearest center. */
export class RegimeTracker {
  readonly #centers: readonly RegimeCenter[];
  #arrivals = Number.NaN;
  #prompts = Number.NaN;

  constructor(centers: readonly RegimeCenter[]) {
    this.#centers = centers;
  }

  /** Takes a window into account. Before traffic has been seen, the first regime it is. */
  see({ request_arrival_rate: rate, mean_prompt_length: prompt, step_index }: ServeObservation): number {
    if (step_index === 0) return 0;
    this.#arrivals = blend(this.#arrivals, Math.log1p(rate));
    // A window without arrivals says nothing about the prompts.
    if (prompt > 0) this.#prompts = blend(this.#prompts, Math.log1p(prompt));
    let nearest = 0;
    let least = Infinity;
    for (const [regime, center] of this.#centers.entries()) {
      const prompts = Number.isNaN(this.#prompts) ? 0 : PROMPT_WEIGHT * (center.prompts - this.#prompts);
      const distance = (center.arrivals - this.#arrivals) ** 2 + prompts ** 2;
      if (distance < least) [nearest, least] = [regime, distance];
    }
    return nearest;
  }
}

function blend(old: number, value: number): number {
  return Number.isNaN(old) ? value : old + NEW_WEIGHT * (value - old);
}
