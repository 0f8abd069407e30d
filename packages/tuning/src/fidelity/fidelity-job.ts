import type { JobContext, Json } from '@servegym/jobs';
import { closedBatch, simulateTrace } from '@servegym/simulator';
import {
  type EngineConstants,
  estimatedProfile,
  findGpu,
  findModel,
  leftOutConstants,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
  VLLM_V1,
} from '@servegym/simulator/calibration';
import { summarize } from '@servegym/simulator/statistics';
import {
  errorPercent,
  type ServedLoadErrors,
  type ServedLoadFidelity,
  type SpeculationFidelity,
} from './fidelity.ts';
import { REFERENCE_DATA } from './reference-data.ts';
import { replayFidelity } from './replay-fidelity.ts';
import { staticBatchFidelity } from './static-batch-fidelity.ts';

/** Published speedup of EAGLE over plain decoding by batch. */
const MEASURED_SPEEDUP = new Map([
  [1, 1.96],
  [128, 1.21],
]);
const DRAFT_TOKENS = 3;
const SPECULATION_BATCHES = [1, 4, 16, 32, 64, 128];

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

/** Errors of one set of constants on the loads of real servers. @param text JSON list of loads */
export function servedLoadFidelity(text: string): ServedLoadFidelity[] {
  const loads = parseServedLoads(text, REFERENCE_DATA.servedLoads.path);
  const leftOut = leftOutConstants(loads);
  return loads.map((load, i) => ({
    run: load.run,
    model: findModel(load.model).name,
    gpus: load.tp,
    ...servedLoadErrors(load, VLLM_V1),
    leftOut: servedLoadErrors(load, leftOut[i]),
  }));
}

function servedLoadErrors(load: ServedLoad, constants: EngineConstants): ServedLoadErrors {
  const run = simulateServedLoad(load, constants);
  const ttft = summarize(run.ttftMs);
  return {
    ttftMean: errorPercent(ttft.mean, load.ttft_mean_ms),
    ttftP99: errorPercent(ttft.p99, load.ttft_p99_ms),
    e2eMean: errorPercent(summarize(run.e2eMs).mean, load.e2e_mean_ms),
  };
}

/** Requests served `batch` at a time on an H100, with and without a draft. */
export function speculationFidelity(): SpeculationFidelity[] {
  const profile = estimatedProfile(findGpu('H100'), findModel('llama-3-8b'), 1);
  return SPECULATION_BATCHES.map((batch) => {
    const trace = closedBatch(Math.max(64, 2 * batch), 256, 256);
    const simulatedMs = (speculationDepth: number) =>
      simulateTrace(trace, { profile, maxNumSeqs: batch, speculationDepth }).simulatedMs;
    return {
      batch,
      simulated: simulatedMs(0) / simulatedMs(DRAFT_TOKENS),
      measured: MEASURED_SPEEDUP.get(batch) ?? null,
    };
  });
}
