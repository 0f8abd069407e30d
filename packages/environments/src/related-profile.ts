import { findProfile, listLastingProfiles } from '@servegym/profiles';
import { type EngineProfile, weightVariant } from '@servegym/simulator';

/**
 * The profile that is most like another, but for its GPU or its model: among those of as many GPUs that fit, the one whose
 * memory, or weights, are nearest in size; the first by name where two are.
 * @param taskId the task that it is for, in the message
 * @throws RangeError when there is none
 */
export function relatedProfile(
  name: string,
  other: 'gpu' | 'model',
  taskId: string,
  fits: (profile: EngineProfile) => boolean,
): EngineProfile {
  const own = findProfile(name);
  const same = other === 'gpu' ? 'model' : 'gpu';
  const size = (profile: EngineProfile) =>
    Math.log(other === 'gpu' ? profile.gpu.memoryGiB : weightVariant(profile, 'FP16').weightGiB);
  const related = listLastingProfiles()
    .filter(
      (profile) =>
        profile[same].name === own[same].name &&
        profile[other].name !== own[other].name &&
        profile.gpu.count === own.gpu.count &&
        fits(profile),
    )
    .sort((a, b) => Math.abs(size(a) - size(own)) - Math.abs(size(b) - size(own)));
  const nearest = related[0];
  if (nearest === undefined) {
    throw new RangeError(
      `Expected a profile with the ${same} ${own[same].name} and another ${other} that can play \`${taskId}\`; there is none among the simulator's profiles`,
    );
  }
  return nearest;
}
