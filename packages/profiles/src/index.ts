export { findProfile, listLastingProfiles, listProfiles } from './data/catalog.ts';
export { statedOverheads, vllmConstants } from './data/engine-constants.ts';
export {
  atListPrice,
  boardWatts,
  findGpu,
  GPUS,
  type Gpu,
  parseGpu,
  parsePrices,
  priceOf,
} from './data/gpu.ts';
export { findModel, knownCheckpoint, MODELS, modelFromConfig, profilesOf } from './data/model-config.ts';
export type { ServedModel } from './data/served-model.ts';
export { loraGiB } from './data/transformer-shape.ts';
export { type BenchCalibration, type BenchErrors, calibrateBench } from './fits/bench-profile.ts';
export { parseBenchResult } from './fits/bench-result.ts';
export { withDraftHead } from './fits/blank-profile.ts';
export { estimatedProfile } from './fits/estimated-profile.ts';
export { coefficientOf, coefficientsOf, errorPercent, mapLaw } from './fits/fit-law.ts';
export {
  type BenchParameter,
  fitLoads,
  type LoadFit,
  type LoadFitOptions,
  parameterOf,
  requestError,
} from './fits/load-fit.ts';
export { fittedLoad, type MeasuredLoad, type MeasuredRequest, measuredLoad } from './fits/measured-load.ts';
export { parseStaticBatches, type StaticBatchRow } from './fits/simulated-batch.ts';
export { calibrateStaticBatches, type StaticBatchCalibration } from './fits/static-batch-profile.ts';
export { profileFromTables, rescheduled, tableProfile } from './fits/table-profile.ts';
export { parseEngineProfile } from './schema/parse-engine-profile.ts';
export { ProfileError } from './schema/read-json.ts';
export { type ReadTables, readOperatorTables } from './tables/read-operator-tables.ts';
