export { type BenchmarkOptions, benchmarkEnvironment } from './benchmark/environment.ts';
export {
  type BenchmarkAction,
  type BenchmarkObservation,
  type BenchmarkState,
  LONGEST_WAIT_S,
} from './benchmark/schema.ts';
export {
  calibrateTask,
  type TaskCalibration,
} from './inferencegym/calibrate-task.ts';
export { type InferenceGymOptions, inferenceGym, inferencegym } from './inferencegym/environment.ts';
export { GymEpisode } from './inferencegym/gym-episode.ts';
export { REFERENCE_COST_PER_1K } from './inferencegym/gym-reward.ts';
export { GymWorld, shippedWorld } from './inferencegym/gym-world.ts';
export { chooseGymTask } from './inferencegym/reset-options.ts';
export {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  type GymAction,
  type GymObservation,
  type GymState,
  gymActionSchema,
  gymObservationSchema,
  gymStateSchema,
  KNOBS,
  type Knob,
  QUEUE_CAPACITY,
  SPEC_LENGTHS,
} from './inferencegym/schema.ts';
export type { StepInfo } from './inferencegym/step-info.ts';
export { inspectTable, type TableFinding } from './inferencegym/table/inspect-table.ts';
export { readTableRows } from './inferencegym/table/read-table.ts';
export { SHIPPED_TABLE_URL, shippedTable } from './inferencegym/table/shipped-table.ts';
export { KEY_COLUMNS, type TableRows } from './inferencegym/table/table-columns.ts';
export { TraceTableError } from './inferencegym/table/table-error.ts';
export { TraceTable } from './inferencegym/table/trace-table.ts';
export { GYM_TASK_IDS, type GymTask, type GymTaskId } from './inferencegym/tasks/gym-task.ts';
export { GYM_TASKS } from './inferencegym/tasks/gym-tasks.ts';
export { constantReturn } from './llmserve/anchors/constant-return.ts';
export { type EpisodeAnchors, episodeAnchors, roomToAdapt } from './llmserve/anchors/episode-anchors.ts';
export {
  isRecordedTask,
  REFERENCE_RETURNS_URL,
  recordedReference,
  referenceConfigurations,
  type SeedReturns,
  type TaskReference,
} from './llmserve/anchors/reference-returns.ts';
export { regretScore } from './llmserve/anchors/regret-score.ts';
export { returnBound } from './llmserve/anchors/return-bound.ts';
export { taskFingerprint } from './llmserve/anchors/task-fingerprint.ts';
export { llmserve, serveEnvironment } from './llmserve/environment.ts';
export {
  normalizeObservation,
  OBSERVATION_SCALES,
  OBSERVED_FIGURES,
  type ObservationScale,
  type ObservedFigure,
} from './llmserve/observation-scales.ts';
export { realServeEnvironment } from './llmserve/real/environment.ts';
export type { RealReport } from './llmserve/real/real-report.ts';
export { type RealSettings, readRealSettings } from './llmserve/real/real-settings.ts';
export { drawRequests, type EpisodeRequests, episodeRequests } from './llmserve/requests/episode-requests.ts';
export { phaseRequests } from './llmserve/requests/phase-requests.ts';
export type { RequestList } from './llmserve/requests/request-list.ts';
export { chooseTask, type ServeScenario, serveResetOptions } from './llmserve/reset-options.ts';
export type { RewardComponents } from './llmserve/reward.ts';
export {
  DEFAULT_ACTION,
  QUANTIZATION_TIERS,
  type QuantizationTier,
  SERVE_KNOBS,
  type ServeAction,
  type ServeKnob,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
  TASK_IDS,
  type TaskId,
} from './llmserve/schema.ts';
export { ServeEpisode, type ServeEpisodeSnapshot, servingConfig } from './llmserve/serve-episode.ts';
export { SHIFTS, type Shift, scaleArrivals, shiftTask } from './llmserve/shifts.ts';
export { SEED_SPLITS, type SeedSplit, splitOfSeed } from './llmserve/splits.ts';
export {
  defineServeTask,
  parseServeTask,
  ServeTaskError,
  type ServeTaskFile,
} from './llmserve/task-files/serve-task-schema.ts';
export { addServeTask, findServeTask, isOwnTask, serveTaskIds } from './llmserve/task-registry.ts';
export { activeKnobs, holdMaskedKnobs, type KnobMask } from './llmserve/tasks/masked-knobs.ts';
export {
  type LengthDistribution,
  type Phase,
  REQUEST_CLASSES,
  type RequestClass,
  type ServeTask,
  type ServiceObjective,
} from './llmserve/tasks/serve-task.ts';
export { SERVE_TASKS } from './llmserve/tasks/serve-tasks.ts';
export { type InlineTrace, inlineTraceSchema, MOST_INLINE_REQUESTS } from './llmserve/traces/inline-trace.ts';
export { addServeTrace, findServeTrace, serveTraceNames } from './llmserve/traces/named-traces.ts';
export type { ClassReport, GpuReport, WindowReport } from './llmserve/window-report.ts';
export { type DrawnRequests, drawWorkload } from './llmserve/workload/draw-workload.ts';
export { fitWorkload, WorkloadFitError, type WorkloadIdentity } from './llmserve/workload/fit-workload.ts';
export type { FittedWorkload } from './llmserve/workload/fitted-workload.ts';
export { findWorkload, WORKLOAD_IDS, type WorkloadId } from './llmserve/workload/fitted-workloads.ts';
