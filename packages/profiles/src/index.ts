export { findProfile, listLastingProfiles, listProfiles } from './data/catalog.ts';
export { type EngineConstants, VLLM_V0, VLLM_V1, vllmConstants } from './data/engine-constants.ts';
export { findGpu, GPUS, type Gpu, parseGpu } from './data/gpu.ts';
export { boardWatts } from './data/gpu-power.ts';
export {
  GPU_PRICES,
  type GpuPrice,
  type GpuPrices,
  listPrice,
  parsePrices,
  priceOf,
} from './data/gpu-prices.ts';
export { findModel, MODELS } from './data/known-models.ts';
export { modelFromConfig } from './data/model-config.ts';
export type { ServedModel } from './data/served-model.ts';
export {
  countParameters,
  kvBytesOfSequence,
  type LatentAttention,
  type LayerGroup,
  type Mixture,
  type TransformerShape,
} from './data/transformer-shape.ts';
export {
  type BenchCalibration,
  type BenchErrors,
  type BenchFold,
  type BenchOptions,
  calibrateBench,
} from './fits/bench-profile.ts';
export { parseBenchResult } from './fits/bench-result.ts';
export type { ComposedRegion, RegionError } from './fits/composed-law.ts';
export { type EngineOverheads, engineOverheads } from './fits/engine-overheads.ts';
export { estimatedProfile } from './fits/estimated-profile.ts';
export { fitEngineConstants, fittedConstants, leftOutConstants } from './fits/fit-engine-constants.ts';
export { fittedLoad } from './fits/fitted-load.ts';
export type { Parallelism } from './fits/iteration-composition.ts';
export {
  calibrateKernels,
  type KernelCalibration,
  type KernelProfileOptions,
} from './fits/kernel-profile.ts';
export {
  coefficientOf,
  coefficientsOf,
  LAW_COEFFICIENTS,
  type LawCoefficient,
  mapLaw,
} from './fits/law-coefficients.ts';
export { leastSquares } from './fits/least-squares.ts';
export {
  type BenchParameter,
  fitLoads,
  type LoadFit,
  type LoadFitOptions,
  parameterOf,
  requestError,
} from './fits/load-fit.ts';
export { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './fits/measured-load.ts';
export { type MeasuredRun, parseMeasuredRun, replayRun } from './fits/measured-run.ts';
export {
  parseRecordedLoad,
  type RecordedLoad,
  type RecordedLoadServer,
  recordedLoadErrors,
} from './fits/recorded-load.ts';
export {
  type LoadLatencies,
  loadLatencies,
  measuredLatencies,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
} from './fits/served-load.ts';
export { type BatchShape, simulateBatch } from './fits/simulated-batch.ts';
export {
  type CalibratedRow,
  calibrateStaticBatches,
  errorPercent,
  type StaticBatchCalibration,
  type StaticBatchOptions,
} from './fits/static-batch-profile.ts';
export {
  type TableProfile,
  type TableProfileOptions,
  tableProfile,
} from './fits/table-profile.ts';
export { CalibrationError, type CalibrationErrorCode } from './schema/calibration-error.ts';
export { parseEngineProfile } from './schema/parse-engine-profile.ts';
export { ProfileError, type ProfileErrorCode } from './schema/profile-error.ts';
export { type KernelTables, parseKernelTables } from './tables/kernel-tables.ts';
export { type OperatingPoint, parseOperatingPoints } from './tables/operating-points.ts';
export { type OperatorRow, type OperatorRows, OperatorTables } from './tables/operator-tables.ts';
export { type ReadTables, readOperatorTables } from './tables/read-operator-tables.ts';
export { parseStaticBatches, type StaticBatchRow } from './tables/static-batch.ts';
