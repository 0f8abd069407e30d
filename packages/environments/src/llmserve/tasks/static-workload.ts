import type { ServeTask } from './serve-task.ts';

/** Steady chat with short prompts: find the batch, the pool and the draft depth that suit it, and keep them. */
export const staticWorkload: ServeTask = {
  id: 'static_workload',
  name: 'Static workload',
  difficulty: 'easy',
  description:
    'Steady Poisson traffic with short prompts. The knobs trade batching against inter-token latency and memory against its price; no change is needed once they are right.',
  windows: 60,
  windowSeconds: 5,
  profile: 'a100-40gb-llama-3-8b',
  acceptance: 'sharegpt',
  objectives: {
    interactive: { ttftMs: 500, tpotMs: 26, weight: 1 },
    batch: { ttftMs: 5000, tpotMs: 100, weight: 0.5 },
    best_effort: { ttftMs: 20000, tpotMs: 200, weight: 0.25 },
  },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.45, cost: 0.05 },
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
      name: 'steady',
      weight: 1,
      windows: [60, 60],
      arrivalsPerSecond: [10, 10],
      burstiness: 0,
      traffic: {
        interactive: {
          share: 1,
          prompt: { median: 180, sigma: 0.6, min: 16, max: 1024 },
          output: { median: 420, sigma: 0.6, min: 16, max: 1200 },
        },
      },
      tenantGiB: [0, 0],
      qualityValue: 8,
    },
  ],
};
