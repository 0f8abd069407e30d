import type { JobContext, Json } from '@servegym/jobs';
import { REFERENCE_DATA } from '../arguments/reference-data.ts';
import { replayFidelity } from './replay-fidelity.ts';
import { servedLoadFidelity } from './served-load-fidelity.ts';
import { speculationFidelity } from './speculation-fidelity.ts';
import { staticBatchFidelity } from './static-batch-fidelity.ts';

/** A part of the comparison, for a thread or another machine. */
export type FidelityPart =
  | { readonly part: 'static-batches'; readonly profile: string }
  | { readonly part: 'served-loads' | 'replay' | 'speculation' };

/** The part, and the names of the shared bytes of the files that it reads. */
export type FidelityInput = FidelityPart & { readonly files: Readonly<Record<string, string>> };

/** The job `fidelity`: compares the simulator with one kind of measurement. */
export function runJob(input: Json, context: JobContext): Json {
  const asked = input as unknown as FidelityInput;
  const read = (path: string) => new TextDecoder().decode(context.shared(asked.files[path]));
  return fidelityOf(asked, read) as unknown as Json;
}

function fidelityOf(asked: FidelityPart, read: (path: string) => string): unknown {
  switch (asked.part) {
    case 'static-batches':
      return staticBatchFidelity(asked.profile, read(REFERENCE_DATA.staticBatches.path));
    case 'served-loads':
      return servedLoadFidelity(read(REFERENCE_DATA.servedLoads.path));
    case 'replay':
      return replayFidelity(read);
    case 'speculation':
      return speculationFidelity();
  }
}
