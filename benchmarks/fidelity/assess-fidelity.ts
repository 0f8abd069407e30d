import type { Job, JobEngine, JobKinds, Json } from '@servegym/jobs';
import { REFERENCE_DATA, type ReferenceFile } from '@servegym/operators/traces';
import type {
  Fidelity,
  QuantizedFidelity,
  RecordedLoadFidelity,
  ReplayFidelity,
  ServedLoadFidelity,
  SpeculationFidelity,
  StaticBatchFidelity,
} from './fidelity.ts';
import type { FidelityInput, FidelityPart } from './fidelity-job.ts';
import { REPLAY_FILES } from './replay-fidelity.ts';
import { staticBatchProfiles } from './static-batch-fidelity.ts';

/** Job kinds that `assessFidelity` submits, with their modules. */
export const FIDELITY_JOB_KINDS: JobKinds = {
  fidelity: new URL('fidelity-job.ts', import.meta.url).href,
};

/** Everything that `assessFidelity` reads. */
export const FIDELITY_FILES: readonly ReferenceFile[] = [
  REFERENCE_DATA.staticBatches,
  ...REFERENCE_DATA.servedLoads,
  REFERENCE_DATA.recordedLoadServers,
  ...REFERENCE_DATA.recordedLoads,
  ...REPLAY_FILES,
];

/**
 * Compares the simulator with every measurement there is.
 *
 * @param read Text of a reference file.
 */
export async function assessFidelity(
  jobs: JobEngine,
  read: (file: ReferenceFile) => Promise<string>,
  onProgress: (share: number) => void = () => undefined,
): Promise<Fidelity> {
  const parts: [FidelityPart, readonly ReferenceFile[]][] = [
    // The longest first.
    [{ part: 'served-loads' }, REFERENCE_DATA.servedLoads],
    [{ part: 'replay' }, REPLAY_FILES],
    [{ part: 'speculation' }, []],
    ...REFERENCE_DATA.recordedLoads.map((file): [FidelityPart, readonly ReferenceFile[]] => [
      { part: 'recorded-load', path: file.path },
      [REFERENCE_DATA.recordedLoadServers, file],
    ]),
    ...staticBatchProfiles().map((profile): [FidelityPart, readonly ReferenceFile[]] => [
      { part: 'static-batches', profile },
      [REFERENCE_DATA.staticBatches],
    ]),
  ];
  const list: Job[] = [];
  for (const [part, needed] of parts) {
    const files: Record<string, string> = {};
    for (const file of needed)
      files[file.path] = await jobs.share(new TextEncoder().encode(await read(file)));
    const input: FidelityInput = { ...part, files };
    list.push({ kind: 'fidelity', input: input as unknown as Json, shared: Object.values(files) });
  }
  const [servedLoads, replay, speculation, ...rest] = (await jobs.run(list, {
    onProgress: ({ share }) => onProgress(share),
  })) as unknown as [ServedLoadFidelity[], ReplayFidelity, SpeculationFidelity[], ...unknown[]];
  const recordedLoads = rest.slice(0, REFERENCE_DATA.recordedLoads.length) as RecordedLoadFidelity[];
  const profiles = rest.slice(REFERENCE_DATA.recordedLoads.length) as {
    own: StaticBatchFidelity;
    quantized: QuantizedFidelity[];
  }[];
  return {
    staticBatches: profiles.map(({ own }) => own),
    quantized: profiles.flatMap(({ quantized }) => quantized),
    replay,
    servedLoads,
    recordedLoads,
    speculation,
  };
}
