import { Tasks } from '../tasks.ts';
import type { Knob } from './schema.ts';
import shipped from './tasks.json' with { type: 'json' };

/** Ids of the tasks, as the wire has them. */
export const GYM_TASK_IDS = [1, 2, 3] as const;
export type GymTaskId = (typeof GYM_TASK_IDS)[number];

/** Prompt lengths, tokens. */
export type PromptDistribution =
  | { readonly kind: 'uniform'; readonly from: number; readonly to: number }
  | {
      readonly kind: 'lognormal';
      readonly mu: number;
      readonly sigma: number;
      readonly from: number;
      readonly to: number;
    };

/** Times of higher rate. The first begins at a random step, so that it cannot be learned by heart. */
interface Bursts {
  /** Arrivals a second. */
  readonly rate: number;
  /** Steps from the begin of one to the begin of the next. */
  readonly period: number;
  /** Steps that one lasts. */
  readonly steps: number;
}

/** Weights of the reward `alpha T - beta L - gamma V - delta C`. */
export interface RewardWeights {
  readonly alpha: number;
  readonly beta: number;
  readonly gamma: number;
  readonly delta: number;
}

/** One task of `inferencegym`. All that makes it what it is stands in its file. */
export interface GymTask {
  readonly id: GymTaskId;
  /** Other name of the id, for people. */
  readonly slug: string;
  readonly name: string;
  readonly difficulty: 'easy' | 'medium' | 'hard';
  readonly description: string;
  /** Knobs that act; the others stay at their defaults whatever an action says. */
  readonly activeKnobs: readonly Knob[];
  /** Arrivals a second outside of bursts. */
  readonly arrivalRate: number;
  readonly bursts: Bursts | null;
  /** A mixture; the shares sum to 1. */
  readonly prompts: readonly { readonly share: number; readonly lengths: PromptDistribution }[];
  /** Output of each request, tokens. */
  readonly outputTokens: number;
  /** Shares of interactive, batch and best-effort requests. */
  readonly classShares: readonly [number, number, number];
  /** Longest time to first token of each class, ms. */
  readonly sloMs: readonly [number, number, number];
  /** Memory that the server should stay within, GB; `null`: only what it must (40 GB). */
  readonly memoryLimitGb: number | null;
  /** Budget of an episode, US cents; `null`: none. */
  readonly costBudget: number | null;
  /** Acceptance of the first draft token of the simplest prompt. */
  readonly acceptanceBase: number;
  readonly reward: RewardWeights;
}

/** The tasks by their ids. */
export const GYM_TASKS = shipped.tasks as unknown as Readonly<Record<GymTaskId, GymTask>>;

export const gymTasks = new Tasks<GymTask, GymTaskId>(GYM_TASKS);
