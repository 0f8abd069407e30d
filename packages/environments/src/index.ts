export type { BenchmarkAction } from './benchmark/environment.ts';
export { benchmark } from './benchmark/environment.ts';
export type { Feature } from './feature.ts';
export type { FleetController } from './fleet/anchors/fleet-controller.ts';
export {
  RateRule,
  type RateRuleParameters,
  STANDARD_RATE_RULE,
  totalArrivals,
  workPerSecond,
} from './fleet/anchors/rate-rule.ts';
export type { FleetSeedReturns, FleetTaskReference } from './fleet/anchors/reference-returns.ts';
export { hpaInFlight, ReplicaScaler } from './fleet/anchors/replica-scaler.ts';
export { fleet } from './fleet/fleet.ts';
export { FleetEpisode } from './fleet/fleet-episode.ts';
export type { FleetRequests } from './fleet/requests/fleet-requests.ts';
export type { FleetScenario } from './fleet/reset-options.ts';
export type { FleetAction, FleetKnob, FleetObservation, FleetState, FleetTaskId } from './fleet/schema.ts';
export type { FleetShift } from './fleet/shifts.ts';
export { FLEET_CLASSES, type FleetTask } from './fleet/tasks/fleet-task.ts';
export type { FleetWindowReport } from './fleet/window-report.ts';
export type { StepInfo } from './inferencegym/environment.ts';
export { GymEpisode } from './inferencegym/gym-episode.ts';
export type { GymTask, GymTaskId } from './inferencegym/gym-tasks.ts';
export { GymWorld, type TaskCalibration } from './inferencegym/gym-world.ts';
export { inferencegym } from './inferencegym/inferencegym.ts';
export type { GymAction, GymObservation, GymState } from './inferencegym/schema.ts';
export { inspectTable, type TableFinding } from './inferencegym/table/inspect-table.ts';
export { readTableRows } from './inferencegym/table/read-table.ts';
export { KEY_COLUMNS, type TableRows, TraceTableError } from './inferencegym/table/table-columns.ts';
export { SHIPPED_TABLE_URL, TraceTable } from './inferencegym/table/trace-table.ts';
export type { EpisodeAnchors } from './llmserve/anchors/episode-anchors.ts';
export type { SeedReturns, TaskReference } from './llmserve/anchors/reference-returns.ts';
export type { MeanReturn } from './llmserve/anchors/reference-summary.ts';
export { llmserve } from './llmserve/llmserve.ts';
export type { RealReport } from './llmserve/real/real-report.ts';
export { type RealSettings, readRealSettings } from './llmserve/real/real-settings.ts';
export { type EpisodeRequests, episodeRequests } from './llmserve/requests/episode-requests.ts';
export { phaseRequests } from './llmserve/requests/phase-requests.ts';
export { drawPrefixes } from './llmserve/requests/prompt-prefixes.ts';
export type { RequestList } from './llmserve/requests/request-source.ts';
export { addServeTrace, findServeTrace } from './llmserve/requests/serve-traces.ts';
export type { ServeScenario } from './llmserve/reset-options.ts';
export {
  type QuantizationTier,
  type ServeAction,
  type ServeKnob,
  type ServeObservation,
  type ServeState,
  serveObservationSchema,
  type TaskId,
} from './llmserve/schema.ts';
export { ServeEpisode, type ServeEpisodeSnapshot, servingConfig } from './llmserve/serve-episode.ts';
export { describeServer } from './llmserve/server-description.ts';
export type { Shift } from './llmserve/shifts.ts';
export {
  type LengthDistribution,
  type Phase,
  REQUEST_CLASSES,
  type ServeTask,
} from './llmserve/tasks/serve-task.ts';
export { defineServeTask } from './llmserve/tasks/serve-task-schema.ts';
export type { WindowReport } from './llmserve/window-report.ts';
export { drawWorkload } from './llmserve/workload/draw-workload.ts';
export { fitWorkload, type WorkloadIdentity } from './llmserve/workload/fit-workload.ts';
export {
  type FittedWorkload,
  findWorkload,
  type PrefixSharing,
  PUBLIC_WORKLOAD_IDS,
  type PublicWorkloadId,
  publicWorkload,
  WORKLOAD_IDS,
  type WorkloadId,
} from './llmserve/workload/fitted-workload.ts';
export { loadOptional } from './load-optional.ts';
export { holdMaskedKnobs, type KnobMask } from './masked-knobs.ts';
export type { DefinitionOptions, RegisteredEnvironment } from './registered-environment.ts';
export { ENVIRONMENT_IDS, ENVIRONMENTS, type EnvironmentId, findEnvironment } from './registry.ts';
export { regretScore } from './regret-score.ts';
export { firstSeeds, SEED_SPLITS, type SeedSplit } from './splits.ts';
