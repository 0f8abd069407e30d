import { listProfiles } from '@servegym/profiles';
import { type EngineProfile, weightVariant } from '@servegym/simulator';

/**
 * Servers that policies of any server or fleet are trained on. GPUs and models that are not listed are never drawn: they
 * are there to test on.
 */
const TRAINED_ON = {
  gpus: ['A100-40GB', 'A100-80GB', 'H100-80GB', 'H200-141GB', 'GH200-96GB', 'B200-180GB', 'L4-24GB'],
  /** Beginnings of names. */
  models: ['llama-', 'qwen', 'phi-'],
  /** Most GPUs of a server, and most of their memory that FP16 weights take. */
  mostGpus: 2,
  mostWeights: 0.7,
} as const;

/** Names of the profiles that policies of any server may be trained on, of those that fit. */
export function trainingProfileNames(fits: (profile: EngineProfile) => boolean): readonly string[] {
  const { gpus, models, mostGpus, mostWeights } = TRAINED_ON;
  return listProfiles()
    .filter(
      (profile) =>
        gpus.some((known) => known === profile.gpu.name) &&
        models.some((known) => profile.name.slice(profile.gpu.name.length + 1).startsWith(known)) &&
        profile.gpu.count <= mostGpus &&
        profile.model.kvGroups === undefined &&
        fits(profile) &&
        weightVariant(profile, 'FP16').weightGiB <= mostWeights * profile.gpu.memoryGiB,
    )
    .map(({ name }) => name);
}
