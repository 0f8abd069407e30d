export { Cluster, type ServingConfig } from './cluster/cluster.ts';
export { Engine } from './engine/engine.ts';
export {
  BATCH_DEPTHS,
  type BatchDepth,
  DRAFTERS,
  type EngineOptions,
  isBatchDepths,
  MAX_REQUEST_TOKENS,
  MOST_WATERMARK,
} from './engine/engine-config.ts';
export type { CompletionLog, EngineCounters, EngineRequest, FirstTokenLog } from './engine/engine-log.ts';
export { MOST_API_SERVERS, VLLM_FRONT_END } from './engine/front-end.ts';
export { DraftTimer, IterationTimer } from './engine/iteration-timer.ts';
export { LatencyHistogram } from './engine/latency-histogram.ts';
export type { PromptPrefix } from './engine/prefix-cache.ts';
export { msFromTicks, NOT_YET, TICKS_PER_MS, TICKS_PER_S, TICKS_PER_US } from './engine/ticks.ts';
export type { FleetFault } from './fleet/faults.ts';
export { Fleet } from './fleet/fleet.ts';
export { type FleetSettings, MAX_FLEET_REPLICAS } from './fleet/fleet-options.ts';
export type { ReplicaState } from './fleet/replica.ts';
export {
  admissionByClass,
  kvAware,
  podAutoscaler,
  ROUTER_POLICIES,
  type RouterPolicy,
} from './policy/built-in.ts';
export {
  definePolicy,
  type Policy,
  type PolicyFault,
  type PolicyFunctions,
  PolicyRun,
  type ScaledFleet,
  startPolicy,
} from './policy/policy.ts';
export type { FleetView, ReplicaView, RequestView } from './policy/views.ts';
export { portableMath } from './portable-math.ts';
export { acceptanceTable, engineOptionsOf } from './profiles/engine-options.ts';
export {
  type EngineProfile,
  type IterationLaw,
  KV_PRECISIONS,
  type KvPrecision,
  PROFILE_STATUSES,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
  type WeightVariant,
} from './profiles/engine-profile.ts';
export {
  type GpuMemory,
  kvBlockBytes,
  kvBlocksGiB,
  kvMemoryGiB,
  kvPoolBlocks,
  kvTokens,
  usedGiB,
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
export { counted } from './reporting/counted.ts';
export { REQUEST_COLUMNS, type RequestRow, requestRows } from './reporting/reporting.ts';
export { drawAdapters, drawPriorities } from './simulation/priorities.ts';
export { PromptChains } from './simulation/prompt-chains.ts';
export { simulateTrace, summarizeRun, TraceSimulation } from './simulation/simulate-trace.ts';
export type {
  EngineSettings,
  PrefillDecodeSplit,
  SimulationOptions,
} from './simulation/simulation-options.ts';
export type { SimulatedSpan, SimulationRun, SimulationSummary } from './simulation/simulation-run.ts';
export { SimulatorError, traceError } from './simulator-error.ts';
export type { Summary } from './statistics/summary.ts';
export { isBenchmarkResult, readBenchmarkResult } from './traces/benchmark-result.ts';
export { agentSessionsTrace, ragPulseTrace } from './traces/conversations.ts';
export { forEachCsvRecord } from './traces/csv-trace.ts';
export { describeTrace, type LengthSummary, type TraceDescription } from './traces/describe-trace.ts';
export {
  closedBatch,
  drawLengths,
  pickRequests,
  poissonTrace,
  repeatTrace,
  scaleRate,
  sliceRequests,
  takeRequests,
} from './traces/operations.ts';
export { parseTrace, traceParser, traceTextOf } from './traces/parse-trace.ts';
export { type ReadTrace, RequestReader } from './traces/request-reader.ts';
export type { TimeUnit, Trace, TraceColumn, TraceOptions, TraceReading } from './traces/trace.ts';
export { TRACE_COLUMNS } from './traces/trace.ts';
