import type { GymTask } from './gym-task.ts';

export const staticUniform: GymTask = {
  id: 1,
  slug: 'static_uniform',
  name: 'Static Uniform',
  difficulty: 'easy',
  description:
    'Steady arrivals of short prompts with long answers: find the batch and the KV pool that carry them within 40 GB.',
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
