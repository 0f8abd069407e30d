import { addServeTask, SERVE_TASKS, type ServeAction, type ServeTask } from '@servegym/environments';

/** A server whose precision and split are what they are: a short task of one's own. This process knows it. */
export const MASKED_TASK: ServeTask = {
  ...SERVE_TASKS.bursty_workload,
  id: 'masked_task',
  windows: 20,
  phases: SERVE_TASKS.bursty_workload.phases.map((phase) => ({ ...phase, windows: [5, 7] as const })),
  maskedKnobs: ['quantization_tier', 'prefill_decode_split'],
};
addServeTask(MASKED_TASK);

/** Turns every knob, masked or not. */
export const TURNED: ServeAction = {
  batch_cap: 200,
  kv_budget_fraction: 0.35,
  speculation_depth: 2,
  quantization_tier: 'INT4',
  prefill_decode_split: true,
  priority_routing: true,
};
