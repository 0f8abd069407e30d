import { REFERENCE_DATA } from '@servegym/operators/traces';
import {
  calibrateStaticBatches,
  findGpu,
  findModel,
  findProfile,
  listProfiles,
  parseStaticBatches,
} from '@servegym/profiles';
import { errorPercent, type QuantizedFidelity, type StaticBatchFidelity } from './fidelity.ts';

/** The profiles that were fitted to static batches. */
export function staticBatchProfiles(): string[] {
  return listProfiles()
    .filter((profile) => profile.fit?.command.includes('--static-batch'))
    .map(({ name }) => name);
}

/** Errors of a profile on batches that its fit has not seen, with its own weights and with quantized ones. */
export function staticBatchFidelity(
  name: string,
  table: string,
): { readonly own: StaticBatchFidelity; readonly quantized: readonly QuantizedFidelity[] } {
  const profile = findProfile(name);
  const calibration = calibrateStaticBatches(parseStaticBatches(table, REFERENCE_DATA.staticBatches.path), {
    gpu: findGpu(profile.gpu.name),
    model: findModel(profile.model.name),
    count: profile.gpu.count,
    memoryOverheadGiB: profile.memory.overheadGiB,
    source: profile.source,
    command: profile.fit!.command,
  });
  return {
    own: {
      profile: name,
      rows: calibration.rows.length,
      leftOutMean: calibration.profile.fit!.heldOutMeanErrorPercent,
      leftOutWorst: calibration.profile.fit!.heldOutWorstErrorPercent,
      overflowing: calibration.overflowing.map((row) => errorPercent(row.predictedS, row.latencyS)),
    },
    quantized: Object.entries(calibration.quantized).map(([weights, fitted]) => ({
      profile: name,
      weights,
      rows: fitted.rows,
      leftOutMean: fitted.heldOutMeanErrorPercent,
      leftOutWorst: fitted.heldOutWorstErrorPercent,
    })),
  };
}
