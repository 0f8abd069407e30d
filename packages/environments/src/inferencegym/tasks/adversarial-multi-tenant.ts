import type { GymTask } from './gym-task.ts';

export const adversarialMultiTenant: GymTask = {
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
