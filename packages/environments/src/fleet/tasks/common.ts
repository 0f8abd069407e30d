import type { FleetAction } from '../schema.ts';
import type { FleetClass, FleetObjective, FleetTask, TokenPrice } from './fleet-task.ts';

/**
 * USD for a million tokens of Llama 3.1 8B: 0.18 (Together AI's public price list, Llama 3.1 8B Instruct Turbo, 2025; lists
 * reach from 0.02 to 0.20). Batch work at half of it, as in the batch interfaces of OpenAI and Groq. Best effort at a
 * quarter: a choice.
 */
export const chatPrices: Readonly<Record<FleetClass, TokenPrice>> = {
  interactive: { usdPerMillionInput: 0.18, usdPerMillionOutput: 0.18 },
  batch: { usdPerMillionInput: 0.09, usdPerMillionOutput: 0.09 },
  best_effort: { usdPerMillionInput: 0.045, usdPerMillionOutput: 0.045 },
};

/**
 * Interactive as MLPerf Inference's interactive Llama 3.1 8B objective asks for its 99th percentile (TTFT 0.5 s, TPOT
 * 30 ms), each request by itself; the other two are choices.
 */
export const objectives: Readonly<Record<FleetClass, FleetObjective>> = {
  interactive: { ttftMs: 500, tpotMs: 30 },
  batch: { e2eMs: 120_000 },
  best_effort: { e2eMs: 600_000 },
};

const defaultAction: FleetAction = {
  replicas: 4,
  second_replicas: 0,
  prefill_replicas: 0,
  routing_queue: 1,
  routing_cache: 0,
  routing_prefix: 0,
  admission_seconds: 600,
  max_num_batched_tokens: 2048,
  max_num_active_seqs: 256,
};

/**
 * Replicas of Llama 3 8B on an H100, whose law is fitted to measurements. A cold start takes 30 to 120 s: from the request
 * for a machine that is there to the first answer of vLLM (weights, compilation, CUDA graphs). The gateway scrapes the
 * replicas each second: a choice.
 */
export const h100Fleet = {
  profile: 'h100-80gb-llama-3-8b',
  coldStartSeconds: [30, 120],
  maxReplicas: 16,
  metricsIntervalMs: 1000,
  failuresPerHour: 0,
  defaultAction,
} as const satisfies Partial<FleetTask>;
