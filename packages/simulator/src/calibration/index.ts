export { CalibrationError, type CalibrationErrorCode } from './calibration-error.ts';
export { findGpu, GPUS, type Gpu } from './gpu.ts';
export { coefficientOf, coefficientsOf, LAW_COEFFICIENTS, type LawCoefficient } from './law-coefficients.ts';
export { findModel, MODELS, type ServedModel } from './model.ts';
export { simulateBatch } from './simulated-batch.ts';
export { parseStaticBatches, type StaticBatchRow } from './static-batch.ts';
export {
  type CalibratedRow,
  calibrateStaticBatches,
  errorPercent,
  type StaticBatchCalibration,
  type StaticBatchOptions,
} from './static-batch-profile.ts';
