export { findProfile, listLastingProfiles, listProfiles } from './data/catalog.ts';
export { engineOverheads, vllmConstants } from './data/engine-constants.ts';
export { boardWatts, findGpu, GPUS, type Gpu, parseGpu, parsePrices, priceOf } from './data/gpu.ts';
export { findModel, MODELS, modelFromConfig } from './data/model-config.ts';
export type { ServedModel } from './data/served-model.ts';
export { type BenchCalibration, type BenchErrors, calibrateBench } from './fits/bench-profile.ts';
export { parseBenchResult } from './fits/bench-result.ts';
export { estimatedProfile } from './fits/estimated-profile.ts';
export { errorPercent } from './fits/fit-errors.ts';
export { fittedLoad } from './fits/fitted-load.ts';
export { calibrateKernels, type KernelCalibration } from './fits/kernel-profile.ts';
export { coefficientOf, coefficientsOf, mapLaw } from './fits/law-coefficients.ts';
export {
  type BenchParameter,
  fitLoads,
  type LoadFit,
  type LoadFitOptions,
  parameterOf,
  requestError,
} from './fits/load-fit.ts';
export { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './fits/measured-load.ts';
export { calibrateStaticBatches, type StaticBatchCalibration } from './fits/static-batch-profile.ts';
export { tableProfile } from './fits/table-profile.ts';
export { parseEngineProfile } from './schema/parse-engine-profile.ts';
export { ProfileError } from './schema/profile-error.ts';
export { parseKernelTables } from './tables/kernel-tables.ts';
export { type ReadTables, readOperatorTables } from './tables/read-operator-tables.ts';
export { parseStaticBatches, type StaticBatchRow } from './tables/static-batch.ts';
