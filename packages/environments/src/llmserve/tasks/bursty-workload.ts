import type { ServeTask } from './serve-task.ts';

const chat = {
  prompt: { median: 220, sigma: 0.8, min: 16, max: 2048 },
  output: { median: 180, sigma: 0.7, min: 8, max: 800 },
};

/** Days, crowds and nights, each of which wants another precision of the weights. */
export const burstyWorkload: ServeTask = {
  id: 'bursty_workload',
  name: 'Bursty workload',
  difficulty: 'medium',
  description:
    'Coding assistants under a tight inter-token objective, flash crowds that need every token of capacity and much KV memory, and quiet nights of background generation. Full precision with deep drafts suits the first, INT8 with large batches and a large pool the second, INT4 on little memory the third; a change of precision costs a reload.',
  windows: 120,
  windowSeconds: 5,
  profile: 'a100-40gb-llama-3-8b',
  acceptance: 'sharegpt',
  objectives: {
    interactive: { ttftMs: 500, tpotMs: 9, weight: 1 },
    batch: { ttftMs: 5000, tpotMs: 60, weight: 0.5 },
    best_effort: { ttftMs: 15000, tpotMs: 120, weight: 0.25 },
  },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.45, cost: 0.05 },
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
      name: 'coding',
      weight: 1,
      windows: [16, 24],
      arrivalsPerSecond: [2.5, 5],
      burstiness: 0.15,
      acceptance: 'instructcoder',
      traffic: {
        interactive: {
          share: 1,
          prompt: { median: 500, sigma: 0.7, min: 32, max: 4096 },
          output: { median: 200, sigma: 0.7, min: 16, max: 800 },
        },
      },
      tenantGiB: [0, 0],
      qualityValue: 14,
    },
    {
      name: 'flash_crowd',
      weight: 1,
      windows: [14, 20],
      arrivalsPerSecond: [20, 27],
      burstiness: 0.25,
      traffic: {
        interactive: { share: 0.25, ...chat },
        batch: {
          share: 0.75,
          prompt: { median: 600, sigma: 0.8, min: 16, max: 4096 },
          output: { median: 360, sigma: 0.7, min: 16, max: 1200 },
        },
      },
      tenantGiB: [0, 0],
      qualityValue: 1,
    },
    {
      name: 'night',
      weight: 1,
      windows: [16, 24],
      arrivalsPerSecond: [1.5, 3],
      burstiness: 0.15,
      acceptance: 'gsm8k',
      traffic: {
        interactive: { share: 0.3, ...chat },
        batch: {
          share: 0.7,
          prompt: { median: 300, sigma: 0.6, min: 64, max: 2048 },
          output: { median: 700, sigma: 0.6, min: 64, max: 2000 },
        },
      },
      tenantGiB: [0, 0],
      qualityValue: 1,
    },
  ],
};
