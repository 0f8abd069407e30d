import { type Deployment, readLaunch, resolveLaunch } from '@servegym/operators/browser';
import { fetchProfiles, type ProfileEntry } from './catalog.ts';

/**
 * The deployment that a pasted line, manifest or Helm values start on a GPU.
 * @throws TuningError `INVALID_LAUNCH`
 */
export async function deploymentOf(
  command: string,
  gpu: string,
  entries: readonly ProfileEntry[],
): Promise<Deployment> {
  const launch = readLaunch(command, 'vllm serve line');
  const { name, shapeOf = name } = launch.model ?? {};
  await fetchProfiles(
    entries.filter((entry) => entry.model === shapeOf && entry.gpu === gpu).map(({ name }) => name),
  );
  return resolveLaunch(launch, { gpu });
}
