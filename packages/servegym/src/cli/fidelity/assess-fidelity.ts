import type { Job, JobEngine, Json } from '@servegym/jobs';
import type {
  Fidelity,
  QuantizedFidelity,
  ReplayFidelity,
  ServedLoadFidelity,
  SpeculationFidelity,
  StaticBatchFidelity,
} from './fidelity.ts';
import type { FidelityInput, FidelityPart } from './fidelity-job.ts';
import { REPLAY_FILES } from './replay-fidelity.ts';
import { SERVED_LOADS } from './served-load-fidelity.ts';
import { STATIC_BATCHES, staticBatchProfiles } from './static-batch-fidelity.ts';

/**
 * Compares the simulator with every measurement there is.
 *
 * @param read Text of a file of the data, by its path there.
 */
export async function assessFidelity(
  jobs: JobEngine,
  read: (path: string) => Promise<string>,
  onProgress: (share: number) => void = () => undefined,
): Promise<Fidelity> {
  const parts: [FidelityPart, readonly string[]][] = [
    // The longest first.
    [{ part: 'served-loads' }, [SERVED_LOADS]],
    [{ part: 'replay' }, Object.values(REPLAY_FILES)],
    [{ part: 'speculation' }, []],
    ...staticBatchProfiles().map((profile): [FidelityPart, readonly string[]] => [
      { part: 'static-batches', profile },
      [STATIC_BATCHES],
    ]),
  ];
  const list: Job[] = [];
  for (const [part, paths] of parts) {
    const files: Record<string, string> = {};
    for (const path of paths) files[path] = await jobs.share(new TextEncoder().encode(await read(path)));
    const input: FidelityInput = { ...part, files };
    list.push({ kind: 'fidelity', input: input as unknown as Json, shared: Object.values(files) });
  }
  const [servedLoads, replay, speculation, ...profiles] = (await jobs.run(list, {
    onProgress: ({ share }) => onProgress(share),
  })) as unknown as [
    ServedLoadFidelity[],
    ReplayFidelity,
    SpeculationFidelity[],
    ...{ own: StaticBatchFidelity; quantized: QuantizedFidelity[] }[],
  ];
  return {
    staticBatches: profiles.map(({ own }) => own),
    quantized: profiles.flatMap(({ quantized }) => quantized),
    replay,
    servedLoads,
    speculation,
  };
}
