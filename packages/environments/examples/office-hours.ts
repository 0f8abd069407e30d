import { defineServeTask } from '@servegym/environments';

/** Coding assistants by day, who notice every lost point of quality, and batches of documents by night. */
export default defineServeTask({
  id: 'office_hours',
  name: 'Office hours',
  description:
    'Coding assistants under a tight inter-token objective take turns with batches of documents that need capacity and memory.',
  windows: 80,
  profile: 'a100-40gb-mistral-7b',
  objectives: {
    interactive: { ttftMs: 500, tpotMs: 8, weight: 1 },
    batch: { ttftMs: 8000, tpotMs: 60, weight: 0.5 },
    best_effort: { ttftMs: 20000, tpotMs: 150, weight: 0.25 },
  },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.5, cost: 0.05 },
  referenceCostPer1k: 0.002,
  defaultAction: {
    batch_cap: 128,
    kv_budget_fraction: 0.6,
    speculation_depth: 3,
    quantization_tier: 'FP16',
    prefill_decode_split: false,
    priority_routing: false,
  },
  phases: [
    {
      name: 'office',
      windows: [16, 24],
      arrivalsPerSecond: [3, 5],
      burstiness: 0.2,
      acceptance: 'instructcoder',
      traffic: {
        interactive: {
          share: 1,
          prompt: { median: 400, sigma: 0.7, min: 16, max: 4096 },
          output: { median: 200, sigma: 0.7, min: 8, max: 800 },
        },
      },
      qualityValue: 20,
    },
    {
      name: 'night',
      windows: [14, 20],
      arrivalsPerSecond: [9, 13],
      burstiness: 0.3,
      traffic: {
        interactive: {
          share: 0.2,
          prompt: { median: 200, sigma: 0.7, min: 16, max: 2048 },
          output: { median: 150, sigma: 0.7, min: 8, max: 600 },
        },
        batch: {
          share: 0.8,
          prompt: { median: 700, sigma: 0.8, min: 32, max: 6000 },
          output: { median: 350, sigma: 0.6, min: 16, max: 1200 },
        },
      },
      qualityValue: 1,
    },
  ],
});
