import type { GymTask } from './gym-task.ts';

export const burstyShareGpt: GymTask = {
  id: 2,
  slug: 'bursty_sharegpt',
  name: 'Bursty ShareGPT',
  difficulty: 'medium',
  description:
    'Chat with heavy-tailed prompts and a burst every 30 seconds: keep the time to first token low within 36 GB.',
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
