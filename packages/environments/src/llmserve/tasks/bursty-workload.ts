import type { ServeTask } from './serve-task.ts';

const chat = {
  prompt: { median: 220, sigma: 0.8, min: 16, max: 2048 },
  output: { median: 180, sigma: 0.7, min: 8, max: 800 },
};

/** Calm chat that wants quality and speed, broken by crowds that want every token of capacity. */
export const burstyWorkload: ServeTask = {
  id: 'bursty_workload',
  name: 'Bursty workload',
  difficulty: 'medium',
  description:
    'Calm chat under a tight inter-token objective alternates with flash crowds several times its rate. Small batches, drafts and a small pool suit the calm; large batches, a large pool and quantized weights the crowd.',
  windows: 120,
  windowSeconds: 5,
  profile: 'a100-40gb-llama-3-8b',
  acceptance: 'sharegpt',
  objectives: {
    interactive: { ttftMs: 400, tpotMs: 25, weight: 1 },
    batch: { ttftMs: 4000, tpotMs: 80, weight: 0.5 },
    best_effort: { ttftMs: 15000, tpotMs: 150, weight: 0.25 },
  },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.3, cost: 0.1 },
  referenceCostPer1k: 0.002,
  defaultAction: {
    batch_cap: 96,
    kv_budget_fraction: 1,
    speculation_depth: 0,
    quantization_tier: 'FP16',
    prefill_decode_split: false,
    priority_routing: false,
  },
  phases: [
    {
      name: 'calm',
      weight: 1,
      windows: [12, 20],
      arrivalsPerSecond: [4, 7],
      burstiness: 0.15,
      traffic: { interactive: { share: 1, ...chat } },
      tenantGiB: [0, 0],
      qualityValue: 8,
    },
    {
      name: 'flash_crowd',
      weight: 1,
      windows: [10, 16],
      arrivalsPerSecond: [15, 22],
      burstiness: 0.3,
      traffic: {
        interactive: { share: 0.4, ...chat },
        batch: {
          share: 0.6,
          prompt: { median: 300, sigma: 0.9, min: 16, max: 4096 },
          output: { median: 200, sigma: 0.7, min: 8, max: 1000 },
        },
      },
      tenantGiB: [0, 0],
      qualityValue: 1,
    },
  ],
};
