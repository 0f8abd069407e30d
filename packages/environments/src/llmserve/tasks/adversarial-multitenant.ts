import type { ServeTask } from './serve-task.ts';

const chat = {
  prompt: { median: 200, sigma: 0.8, min: 16, max: 2048 },
  output: { median: 180, sigma: 0.7, min: 8, max: 800 },
};
const documents = {
  prompt: { median: 4000, sigma: 0.5, min: 1024, max: 8192 },
  output: { median: 150, sigma: 0.6, min: 8, max: 600 },
};
const jobs = {
  prompt: { median: 400, sigma: 0.9, min: 16, max: 4096 },
  output: { median: 250, sigma: 0.7, min: 8, max: 1000 },
};

/** Phases that want opposite things, three classes, and tenants whose memory swings. */
export const adversarialMultitenant: ServeTask = {
  id: 'adversarial_multitenant',
  name: 'Adversarial multi-tenant',
  difficulty: 'hard',
  description:
    'Quality-critical chat, short-prompt storms and waves of long documents in random order, in three priority classes, on GPUs whose co-located tenants take memory and give it back. A pool that is too greedy runs out of memory.',
  windows: 120,
  windowSeconds: 5,
  profile: 'a100-40gb-llama-3-8b',
  acceptance: 'sharegpt',
  objectives: {
    interactive: { ttftMs: 400, tpotMs: 30, weight: 1 },
    batch: { ttftMs: 4000, tpotMs: 80, weight: 0.5 },
    best_effort: { ttftMs: 15000, tpotMs: 150, weight: 0.25 },
  },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.3, cost: 0.1 },
  referenceCostPer1k: 0.002,
  defaultAction: {
    batch_cap: 96,
    kv_budget_fraction: 0.5,
    speculation_depth: 0,
    quantization_tier: 'FP16',
    prefill_decode_split: false,
    priority_routing: false,
  },
  phases: [
    {
      name: 'chat',
      weight: 1,
      windows: [12, 18],
      arrivalsPerSecond: [4, 7],
      burstiness: 0.2,
      traffic: { interactive: { share: 0.9, ...chat }, best_effort: { share: 0.1, ...jobs } },
      tenantGiB: [2, 6],
      qualityValue: 10,
    },
    {
      name: 'storm',
      weight: 1,
      windows: [10, 14],
      arrivalsPerSecond: [18, 26],
      burstiness: 0.4,
      traffic: {
        interactive: {
          share: 0.5,
          prompt: { median: 90, sigma: 0.6, min: 16, max: 512 },
          output: { median: 120, sigma: 0.6, min: 8, max: 400 },
        },
        batch: { share: 0.3, ...jobs },
        best_effort: { share: 0.2, ...jobs },
      },
      tenantGiB: [2, 8],
      qualityValue: 1,
    },
    {
      name: 'documents',
      weight: 1,
      windows: [12, 16],
      arrivalsPerSecond: [2.5, 4],
      burstiness: 0.3,
      traffic: {
        interactive: { share: 0.4, ...chat },
        batch: { share: 0.6, ...documents },
      },
      tenantGiB: [4, 12],
      qualityValue: 2,
    },
  ],
};
