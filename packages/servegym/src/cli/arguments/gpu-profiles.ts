import type { EngineProfile } from '@servegym/simulator';

/**
 * Profiles on a GPU, by its name, the first words of it, or else a part of it: `l4` is L4-24GB and not L40S-48GB, `a100` both
 * sizes of it, `6000` RTX-PRO-6000-96GB,
 * `rtx 4090` RTX4090-24GB.
 */
export function profilesOnGpu(profiles: readonly EngineProfile[], gpu: string): EngineProfile[] {
  const wanted = gpu
    .trim()
    .toLowerCase()
    .replace(/[\s_]+/g, '-');
  const named = (is: (name: string) => boolean) =>
    profiles.filter((profile) => is(profile.gpu.name.toLowerCase()));
  const first = named((name) => name === wanted || name.startsWith(`${wanted}-`));
  const plain = (name: string) => name.replaceAll('-', '');
  return first.length > 0 ? first : named((name) => plain(name).includes(plain(wanted)));
}
