export { type BenchmarkAction, benchmark } from './benchmark/environment.ts';
export type { Feature } from './feature.ts';
export {
  type FleetController,
  type RateRuleParameters,
  rateRule,
  type ScalingPolicy,
  STANDARD_RATE_RULE,
  scalingController,
  totalArrivals,
  workPerSecond,
} from './fleet/anchors/controllers.ts';
export { type FleetTaskReference, hpaInFlight, ruleController } from './fleet/anchors/fleet-anchors.ts';
export { fleet } from './fleet/environment.ts';
export { FleetEpisode } from './fleet/fleet-episode.ts';
export type { FleetRequests } from './fleet/fleet-requests.ts';
export type { FleetTask } from './fleet/fleet-task.ts';
export type { FleetScenario } from './fleet/scenario.ts';
export type { FleetAction, FleetKnob, FleetObservation, FleetTaskId } from './fleet/schema.ts';
export type { FleetWindowReport } from './fleet/window-ledger.ts';
export { regretScore } from './grading.ts';
export { inferencegym, type StepInfo } from './inferencegym/environment.ts';
export { GymEpisode } from './inferencegym/gym-episode.ts';
export type { GymTask } from './inferencegym/gym-tasks.ts';
export { GymWorld, type TaskCalibration } from './inferencegym/gym-world.ts';
export type { GymAction, GymObservation } from './inferencegym/schema.ts';
export type { TableRows } from './inferencegym/table/table-columns.ts';
export { readTableRows, SHIPPED_TABLE_URL, TraceTable } from './inferencegym/table/trace-table.ts';
export type { SeedReturns, TaskReference } from './llmserve/anchors/serve-anchors.ts';
export { llmserve } from './llmserve/environment.ts';
export {
  type EpisodeRequests,
  episodeRequests,
  phaseRequests,
  type RequestList,
} from './llmserve/episode-requests.ts';
export { type RealSettings, readRealSettings } from './llmserve/real/real-settings.ts';
export type { ServeScenario, Shift } from './llmserve/scenario.ts';
export type { ServeAction, ServeKnob, ServeObservation, TaskId } from './llmserve/schema.ts';
export { ServeEpisode, type ServeEpisodeSnapshot, servingConfig } from './llmserve/serve-episode.ts';
export { defineServeTask, type Phase, type ServeTask, serverOf } from './llmserve/serve-task.ts';
export type { WindowReport } from './llmserve/window-metrics.ts';
export { loadOptional, openAiClient } from './load-optional.ts';
export {
  type DefinitionOptions,
  ENVIRONMENT_IDS,
  ENVIRONMENTS,
  type EnvironmentId,
  findEnvironment,
  type RegisteredEnvironment,
} from './registry.ts';
export { firstSeeds, SEED_SPLITS, type SeedSplit } from './scenario.ts';
export { REQUEST_CLASSES, Tasks } from './tasks.ts';
export { addServeTrace, findServeTrace } from './traces.ts';
export { holdMaskedKnobs } from './window-environment.ts';
export {
  drawPrefixes,
  drawWorkload,
  type FittedWorkload,
  PUBLIC_WORKLOAD_IDS,
  type PublicWorkloadId,
  publicWorkload,
  WORKLOAD_IDS,
} from './workload/fitted-workload.ts';
