import { Tasks } from '../tasks.ts';
import type { Knob } from './schema.ts';

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

const adversarialMultiTenant: GymTask = {
  id: 3,
  slug: 'adversarial_multi_tenant',
  name: 'Adversarial Multi-Tenant',
  difficulty: 'hard',
  description:
    'Short questions and long documents in three classes, and a flood of ten times the rate: throughput, objectives, cost and calm hands all count.',
  activeKnobs: ['kv_budget', 'spec_length', 'batch_size', 'prefill_disagg', 'quant_tier'],
  arrivalRate: 30,
  bursts: { rate: 300, period: 120, steps: 15 },
  prompts: [
    { share: 0.7, lengths: { kind: 'uniform', from: 32, to: 128 } },
    { share: 0.3, lengths: { kind: 'uniform', from: 4096, to: 8192 } },
  ],
  outputTokens: 32,
  classShares: [0.2, 0.5, 0.3],
  sloMs: [200, 2000, 10_000],
  memoryLimitGb: 38,
  costBudget: 5,
  acceptanceBase: 0.45,
  reward: { alpha: 0.4, beta: 0.25, gamma: 0.35, delta: 0.15 },
};

const burstyShareGpt: GymTask = {
  id: 2,
  slug: 'bursty_sharegpt',
  name: 'Bursty ShareGPT',
  difficulty: 'medium',
  description:
    'Chat with heavy-tailed prompts and a burst every 30 seconds: keep the time to first token low within 36 GB. A tuning task: the best configuration that never changes earns nearly all there is.',
  activeKnobs: ['kv_budget', 'batch_size', 'spec_length'],
  arrivalRate: 25,
  bursts: { rate: 80, period: 30, steps: 5 },
  prompts: [{ share: 1, lengths: { kind: 'lognormal', mu: 5.2, sigma: 1.3, from: 32, to: 8192 } }],
  outputTokens: 96,
  classShares: [1, 0, 0],
  sloMs: [300, 300, 300],
  memoryLimitGb: 36,
  costBudget: null,
  acceptanceBase: 0.65,
  reward: { alpha: 0.4, beta: 0.25, gamma: 0.3, delta: 0.1 },
};

const staticUniform: GymTask = {
  id: 1,
  slug: 'static_uniform',
  name: 'Static Uniform',
  difficulty: 'easy',
  description:
    'Steady arrivals of short prompts with long answers: find the batch and the KV pool that carry them within 40 GB. A tuning task: no change is needed once they are right.',
  activeKnobs: ['kv_budget', 'batch_size'],
  arrivalRate: 10,
  bursts: null,
  prompts: [{ share: 1, lengths: { kind: 'uniform', from: 64, to: 128 } }],
  outputTokens: 672,
  classShares: [1, 0, 0],
  sloMs: [500, 500, 500],
  memoryLimitGb: null,
  costBudget: null,
  acceptanceBase: 0.8,
  reward: { alpha: 0.4, beta: 0.25, gamma: 0.25, delta: 0.1 },
};

/** The tasks by their ids. */
export const GYM_TASKS: Readonly<Record<GymTaskId, GymTask>> = {
  1: staticUniform,
  2: burstyShareGpt,
  3: adversarialMultiTenant,
};

export const gymTasks = new Tasks<GymTask>(GYM_TASKS);
