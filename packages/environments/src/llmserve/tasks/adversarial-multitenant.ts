import type { ServeTask } from './serve-task.ts';

const chat = {
  prompt: { median: 220, sigma: 0.8, min: 16, max: 2048 },
  output: { median: 180, sigma: 0.7, min: 8, max: 800 },
};
const jobs = {
  prompt: { median: 550, sigma: 0.8, min: 16, max: 4096 },
  output: { median: 340, sigma: 0.7, min: 16, max: 1200 },
};
/** So many of these at once fill the KV memory of the GPUs. */
const longAnswers = {
  prompt: { median: 800, sigma: 0.7, min: 64, max: 8192 },
  output: { median: 800, sigma: 0.5, min: 64, max: 2000 },
};

/** Phases that want opposite things, three classes, and tenants whose memory swings. */
export const adversarialMultitenant: ServeTask = {
  id: 'adversarial_multitenant',
  name: 'Adversarial multi-tenant',
  difficulty: 'hard',
  description:
    'Quality-critical chat, storms of requests for long answers, waves of long documents and background agents in random order, in three priority classes, on GPUs whose co-located tenants take memory and give it back. A pool that is too greedy runs out of memory.',
  windows: 120,
  windowSeconds: 5,
  profile: 'a100-40gb-llama-3-8b',
  acceptance: 'sharegpt',
  objectives: {
    interactive: { ttftMs: 500, tpotMs: 9, weight: 1 },
    batch: { ttftMs: 5000, tpotMs: 60, weight: 0.5 },
    best_effort: { ttftMs: 15000, tpotMs: 120, weight: 0.25 },
  },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.6, cost: 0.05 },
  referenceCostPer1k: 0.002,
  defaultAction: {
    batch_cap: 128,
    kv_budget_fraction: 0.6,
    speculation_depth: 3,
    quantization_tier: 'INT8',
    prefill_decode_split: false,
    priority_routing: false,
  },
  phases: [
    {
      name: 'chat',
      weight: 1,
      windows: [14, 22],
      arrivalsPerSecond: [4, 7],
      burstiness: 0.15,
      traffic: {
        interactive: { share: 0.95, ...chat },
        best_effort: { share: 0.05, ...jobs },
      },
      tenantGiB: [0, 4],
      qualityValue: 18,
    },
    {
      name: 'storm',
      weight: 1,
      windows: [12, 18],
      arrivalsPerSecond: [10, 15],
      burstiness: 0.3,
      traffic: {
        interactive: {
          share: 0.3,
          prompt: { median: 120, sigma: 0.7, min: 16, max: 1024 },
          output: { median: 160, sigma: 0.6, min: 8, max: 600 },
        },
        batch: { share: 0.5, ...longAnswers },
        best_effort: { share: 0.2, ...longAnswers },
      },
      tenantGiB: [0, 4],
      qualityValue: 1,
    },
    {
      name: 'documents',
      weight: 1,
      windows: [14, 22],
      arrivalsPerSecond: [5, 7],
      burstiness: 0.2,
      acceptance: 'cnn',
      traffic: {
        interactive: { share: 0.5, ...chat },
        batch: {
          share: 0.5,
          prompt: { median: 4500, sigma: 0.4, min: 1024, max: 8192 },
          output: { median: 250, sigma: 0.6, min: 16, max: 600 },
        },
      },
      tenantGiB: [4, 13],
      qualityValue: 2,
    },
    {
      name: 'agents',
      weight: 1,
      windows: [14, 22],
      arrivalsPerSecond: [2, 3.5],
      burstiness: 0.2,
      acceptance: 'gsm8k',
      traffic: {
        interactive: { share: 0.25, ...chat },
        best_effort: {
          share: 0.75,
          prompt: { median: 500, sigma: 0.6, min: 64, max: 2048 },
          output: { median: 700, sigma: 0.6, min: 64, max: 2000 },
        },
      },
      tenantGiB: [8, 13],
      qualityValue: 1,
    },
  ],
};
