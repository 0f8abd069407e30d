export { Cluster, type ClusterOptions, type ClusterSnapshot } from './cluster/cluster.ts';
export { type GpuMemory, usedGiB } from './cluster/gpu-memory.ts';
export type { ClusterEvent, ServingConfig } from './cluster/serving-config.ts';
export { Engine } from './engine/engine.ts';
export {
  BATCH_DEPTHS,
  type BatchDepth,
  DRAFTERS,
  type Drafter,
  type EngineConfig,
  EngineError,
  type EngineOptions,
  type EngineRole,
  type IterationSpan,
  isBatchDepths,
  MAX_REQUEST_TOKENS,
  MOST_WATERMARK,
} from './engine/engine-config.ts';
export type {
  CompletionLog,
  EngineCounters,
  FirstTokenLog,
  RequestProgress,
} from './engine/engine-log.ts';
export type { EngineRequest } from './engine/engine-request.ts';
export type { EngineSnapshot } from './engine/engine-snapshot.ts';
export { type FrontEndOptions, MOST_API_SERVERS, VLLM_FRONT_END } from './engine/front-end.ts';
export { DraftTimer, IterationTimer } from './engine/iteration-timer.ts';
export { LatencyHistogram } from './engine/latency-histogram.ts';
export type { PromptPrefix } from './engine/prefix-cache.ts';
export { msFromTicks, NOT_YET, TICKS_PER_MS, TICKS_PER_S, TICKS_PER_US } from './engine/ticks.ts';
export type { SchedulingPolicy } from './engine/waiting-queue.ts';
export { Fleet, type FleetSnapshot } from './fleet/fleet.ts';
export type { FleetSettings } from './fleet/fleet-options.ts';
export type { ReplicaState } from './fleet/replica.ts';
export { acceptanceTable } from './profiles/acceptance-table.ts';
export { engineOptionsOf } from './profiles/engine-options.ts';
export {
  type EngineProfile,
  type FactorPoint,
  type HostCheckpoints,
  type IterationLaw,
  KV_PRECISIONS,
  type KvPrecision,
  type ParallelDivision,
  PROFILE_STATUSES,
  type ProfileFit,
  type ProfileStatus,
  type SchedulerSettings,
  type SpeculationProfile,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
  type WeightVariant,
} from './profiles/engine-profile.ts';
export {
  kvBlocksGiB,
  kvMemoryGiB,
  kvPoolBlocks,
  weightChangeSeconds,
  weightVariant,
} from './profiles/kv-pool.ts';
export {
  RandomStream,
  randomBits,
  randomUniform,
  streamKey,
  subKey,
  subKeyBits,
} from './random/counter-random.ts';
export { chromeTrace } from './reporting/chrome-trace.ts';
export { REQUEST_COLUMNS, type RequestRow, requestRows } from './reporting/request-rows.ts';
export { drawPriorities } from './simulation/priorities.ts';
export { PromptChains } from './simulation/prompt-chains.ts';
export { ROUTER_POLICIES, type RouterPolicy } from './simulation/router.ts';
export {
  type ClusterSimulationOptions,
  type ServingChange,
  simulateCluster,
} from './simulation/simulate-cluster.ts';
export { simulateTrace } from './simulation/simulate-trace.ts';
export { SimulationError } from './simulation/simulation-error.ts';
export type {
  EngineSettings,
  PrefillDecodeSplit,
  SecondPool,
  SimulationOptions,
} from './simulation/simulation-options.ts';
export type {
  SimulatedEvent,
  SimulatedSpan,
  SimulationRun,
  SimulationSummary,
  SimulationTotals,
} from './simulation/simulation-run.ts';
export { summarizeRun, TraceSimulation } from './simulation/trace-simulation.ts';
export type { Summary } from './statistics/summary.ts';
export { type BenchmarkLoad, isBenchmarkResult, readBenchmarkResult } from './traces/benchmark-result.ts';
export {
  agentSessionsTrace,
  type JsonDocument,
  type RagPulseFiles,
  ragPulseTrace,
} from './traces/conversations.ts';
export { forEachCsvRecord } from './traces/csv-records.ts';
export {
  describeTrace,
  type LengthSummary,
  type TraceDescription,
  type WindowCounts,
} from './traces/describe-trace.ts';
export { parseJsonlTrace } from './traces/jsonl-trace.ts';
export {
  closedBatch,
  type DrawnLengths,
  drawLengths,
  repeatTrace,
  scaleRate,
  takeRequests,
} from './traces/operations.ts';
export { parseTrace, type TraceText, traceParser, traceTextOf } from './traces/parse-trace.ts';
export { type ReadTrace, RequestReader } from './traces/request-reader.ts';
export type { Trace } from './traces/trace.ts';
export { decodeTrace, encodeTrace } from './traces/trace-bytes.ts';
export { TraceError, type TraceErrorCode } from './traces/trace-error.ts';
export type { TimeUnit, TraceColumn, TraceOptions, TraceReading } from './traces/trace-options.ts';
export type { TraceParser } from './traces/trace-parser.ts';
