export { type BenchmarkOptions, benchmarkEnvironment } from './benchmark/environment.ts';
export {
  type BenchmarkAction,
  type BenchmarkObservation,
  type BenchmarkState,
  LONGEST_WAIT_S,
} from './benchmark/schema.ts';
export { llmserve } from './llmserve/environment.ts';
export type { RewardComponents } from './llmserve/reward.ts';
export {
  DEFAULT_ACTION,
  QUANTIZATION_TIERS,
  type QuantizationTier,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
  TASK_IDS,
  type TaskId,
} from './llmserve/schema.ts';
export { ServeEpisode, type ServeEpisodeSnapshot, servingConfig } from './llmserve/serve-episode.ts';
export { SEED_SPLITS, type SeedSplit } from './llmserve/splits.ts';
export {
  REQUEST_CLASSES,
  type RequestClass,
  type ServeTask,
  type ServiceObjective,
} from './llmserve/tasks/serve-task.ts';
export { SERVE_TASKS } from './llmserve/tasks/serve-tasks.ts';
export type { ClassReport, GpuReport, WindowReport } from './llmserve/window-report.ts';
export { generateWorkload, type Workload } from './llmserve/workload/workload.ts';
