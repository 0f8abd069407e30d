export {
  type BenchmarkAction,
  type BenchmarkObservation,
  type BenchmarkOptions,
  type BenchmarkState,
  benchmarkEnvironment,
} from './benchmark/environment.ts';
export type { Feature } from './feature.ts';
export { controlledReturn, type FleetAnchors, fleetAnchors } from './fleet/anchors/fleet-anchors.ts';
export type { FleetController } from './fleet/anchors/fleet-controller.ts';
export {
  RateRule,
  type RateRuleParameters,
  STANDARD_RATE_RULE,
  totalArrivals,
  workPerSecond,
} from './fleet/anchors/rate-rule.ts';
export {
  FLEET_REFERENCE_RETURNS_URL,
  type FleetSeedReturns,
  type FleetTaskReference,
  fleetTaskFingerprint,
  recordedFleetReference,
} from './fleet/anchors/reference-returns.ts';
export { hpaInFlight, ReplicaScaler } from './fleet/anchors/replica-scaler.ts';
export { fleetReturnBound } from './fleet/anchors/return-bound.ts';
export { fleetEnvironment } from './fleet/environment.ts';
export { FLEET_FEATURES, FLEET_SERVER_FEATURES } from './fleet/features.ts';
export { FleetEpisode } from './fleet/fleet-episode.ts';
export { drawFleetRequests } from './fleet/requests/draw-requests.ts';
export type { FleetRequests } from './fleet/requests/fleet-requests.ts';
export { traceFleetRequests } from './fleet/requests/trace-requests.ts';
export { chooseFleetTask, type FleetScenario, fleetResetOptions } from './fleet/reset-options.ts';
export {
  FLEET_ACTION_BINS,
  FLEET_KNOBS,
  FLEET_TASK_IDS,
  type FleetAction,
  type FleetKnob,
  type FleetObservation,
  type FleetState,
  type FleetTaskId,
  fleetActionSchema,
} from './fleet/schema.ts';
export { FLEET_SHIFTS, type FleetShift, scaleFleetArrivals } from './fleet/shifts.ts';
export { FLEET_TASKS, fleetTasks } from './fleet/task-registry.ts';
export { FLEET_CLASSES, type FleetTask, idleFleetKnobs } from './fleet/tasks/fleet-task.ts';
export { type FleetTaskFile, parseFleetTask } from './fleet/tasks/fleet-task-schema.ts';
export type { FleetWindowReport } from './fleet/window-report.ts';
export type { StepInfo } from './inferencegym/environment.ts';
export { type InferenceGymOptions, inferenceGym, inferencegym } from './inferencegym/environment.ts';
export { GymEpisode } from './inferencegym/gym-episode.ts';
export { GYM_TASK_IDS, GYM_TASKS, type GymTask, type GymTaskId } from './inferencegym/gym-tasks.ts';
export {
  calibrateTask,
  GymWorld,
  shippedWorld,
  type TaskCalibration,
} from './inferencegym/gym-world.ts';
export { chooseGymTask } from './inferencegym/reset-options.ts';
export {
  EPISODE_STEPS,
  GYM_ACTION_BINS,
  GYM_DEFAULT_ACTION,
  GYM_FEATURES,
  type GymAction,
  type GymObservation,
  type GymState,
  gymActionSchema,
  gymObservationSchema,
  KNOBS,
  type Knob,
  SPEC_LENGTHS,
} from './inferencegym/schema.ts';
export { inspectTable, type TableFinding } from './inferencegym/table/inspect-table.ts';
export { readTableRows } from './inferencegym/table/read-table.ts';
export {
  KEY_COLUMNS,
  type TableRows,
  TraceTableError,
} from './inferencegym/table/table-columns.ts';
export { SHIPPED_TABLE_URL, TraceTable } from './inferencegym/table/trace-table.ts';
export {
  constantReturn,
  type EpisodeAnchors,
  episodeAnchors,
  roomToAdapt,
} from './llmserve/anchors/episode-anchors.ts';
export {
  isRecordedTask,
  REFERENCE_RETURNS_URL,
  recordedReference,
  referenceConfigurations,
  type SeedReturns,
  type TaskReference,
  taskFingerprint,
} from './llmserve/anchors/reference-returns.ts';
export { type MeanReturn, summarizeReference } from './llmserve/anchors/reference-summary.ts';
export { returnBound } from './llmserve/anchors/return-bound.ts';
export { llmserve, serveEnvironment } from './llmserve/environment.ts';
export { SERVER_FEATURES, WINDOW_FEATURES } from './llmserve/features.ts';
export { randomiseTask } from './llmserve/randomise-task.ts';
export { realServeEnvironment } from './llmserve/real/environment.ts';
export type { RealReport } from './llmserve/real/real-report.ts';
export { type RealSettings, readRealSettings } from './llmserve/real/real-settings.ts';
export { drawRequests, type EpisodeRequests, episodeRequests } from './llmserve/requests/episode-requests.ts';
export { phaseRequests } from './llmserve/requests/phase-requests.ts';
export { drawPrefixes } from './llmserve/requests/prompt-prefixes.ts';
export type { RequestList } from './llmserve/requests/request-source.ts';
export {
  addServeTrace,
  findServeTrace,
} from './llmserve/requests/serve-traces.ts';
export { chooseTask, type ServeScenario, serveResetOptions } from './llmserve/reset-options.ts';
export type { RewardComponents } from './llmserve/reward.ts';
export {
  DEFAULT_ACTION,
  normalizeObservation,
  OBSERVED_FIGURES,
  type ObservedFigure,
  QUANTIZATION_TIERS,
  type QuantizationTier,
  SERVE_ACTION_BINS,
  SERVE_KNOBS,
  type ServeAction,
  type ServeKnob,
  type ServeObservation,
  type ServerDescription,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  TASK_IDS,
  type TaskId,
} from './llmserve/schema.ts';
export { ServeEpisode, type ServeEpisodeSnapshot, servingConfig } from './llmserve/serve-episode.ts';
export { describeServer } from './llmserve/server-description.ts';
export { SHIFTS, type Shift, scaleArrivals, shiftTask } from './llmserve/shifts.ts';
export {
  addServeTask,
  findServeTask,
  isOwnTask,
  SERVE_TASKS,
  serveTaskIds,
} from './llmserve/task-registry.ts';
export { activeKnobs } from './llmserve/tasks/active-knobs.ts';
export {
  type LengthDistribution,
  type Phase,
  REQUEST_CLASSES,
  type RequestClass,
  type ServeTask,
  type ServiceObjective,
} from './llmserve/tasks/serve-task.ts';
export {
  defineServeTask,
  parseServeTask,
  type ServeTaskFile,
} from './llmserve/tasks/serve-task-schema.ts';
export type { ClassReport, GpuReport, WindowReport } from './llmserve/window-report.ts';
export { type DrawnRequests, drawWorkload } from './llmserve/workload/draw-workload.ts';
export { fitWorkload, type WorkloadIdentity } from './llmserve/workload/fit-workload.ts';
export type { FittedWorkload, PrefixSharing } from './llmserve/workload/fitted-workload.ts';
export {
  findWorkload,
  PUBLIC_WORKLOAD_IDS,
  type PublicWorkloadId,
  publicWorkload,
  WORKLOAD_IDS,
  type WorkloadId,
} from './llmserve/workload/fitted-workload.ts';
export { loadOptional } from './load-optional.ts';
export { holdMaskedKnobs, type KnobMask } from './masked-knobs.ts';
export { regretScore } from './regret-score.ts';
export { firstSeeds, SEED_SPLITS, type SeedSplit, splitOfSeed } from './splits.ts';
