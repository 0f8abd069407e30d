export { findModel, MODELS } from '../models/known-models.ts';
export { modelFromConfig } from '../models/model-config.ts';
export type { ServedModel } from '../models/served-model.ts';
export {
  countParameters,
  kvBytesOfSequence,
  type LatentAttention,
  type LayerGroup,
  type Mixture,
  type TransformerShape,
} from '../models/transformer-shape.ts';
export {
  type BenchCalibration,
  type BenchErrors,
  type BenchFold,
  type BenchOptions,
  calibrateBench,
} from './bench-profile.ts';
export { parseBenchResult } from './bench-result.ts';
export { CalibrationError, type CalibrationErrorCode } from './calibration-error.ts';
export type { ComposedRegion, RegionError } from './composed-law.ts';
export { type EngineConstants, VLLM_V0, VLLM_V1, vllmConstants } from './engine-constants.ts';
export { type EngineOverheads, engineOverheads } from './engine-overheads.ts';
export { estimatedProfile } from './estimated-profile.ts';
export { fitEngineConstants, fittedConstants, leftOutConstants } from './fit-engine-constants.ts';
export { fittedLoad } from './fitted-load.ts';
export { findGpu, GPUS, type Gpu, parseGpu } from './gpu.ts';
export { boardWatts } from './gpu-power.ts';
export { GPU_PRICES, type GpuPrice, type GpuPrices, listPrice, parsePrices, priceOf } from './gpu-prices.ts';
export type { Parallelism } from './iteration-composition.ts';
export { calibrateKernels, type KernelCalibration, type KernelProfileOptions } from './kernel-profile.ts';
export { type KernelTables, parseKernelTables } from './kernel-tables.ts';
export {
  coefficientOf,
  coefficientsOf,
  LAW_COEFFICIENTS,
  type LawCoefficient,
  mapLaw,
} from './law-coefficients.ts';
export { leastSquares } from './least-squares.ts';
export {
  type BenchParameter,
  fitLoads,
  type LoadFit,
  type LoadFitOptions,
  parameterOf,
  requestError,
} from './load-fit.ts';
export { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './measured-load.ts';
export { type MeasuredRun, parseMeasuredRun, replayRun } from './measured-run.ts';
export { type OperatingPoint, parseOperatingPoints } from './operating-points.ts';
export { type OperatorRow, type OperatorRows, OperatorTables } from './operator-tables.ts';
export {
  parseRecordedLoad,
  type RecordedLoad,
  type RecordedLoadServer,
  recordedLoadErrors,
} from './recorded-load.ts';
export {
  type LoadLatencies,
  loadLatencies,
  measuredLatencies,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
} from './served-load.ts';
export { type BatchShape, simulateBatch } from './simulated-batch.ts';
export { parseStaticBatches, type StaticBatchRow } from './static-batch.ts';
export {
  type CalibratedRow,
  calibrateStaticBatches,
  errorPercent,
  type StaticBatchCalibration,
  type StaticBatchOptions,
} from './static-batch-profile.ts';
export {
  type TableProfile,
  type TableProfileOptions,
  tableProfile,
} from './table-profile.ts';
