import type { JobContext, Json } from '@servegym/jobs';
import { REFERENCE_DATA } from '@servegym/operators/traces';
import { estimatedProfile, findGpu, findModel, vllmConstants } from '@servegym/profiles';
import { closedBatch, simulateTrace } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import type { EngineConstants } from '../../packages/profiles/src/data/engine-constants.ts';
import { leftOutConstants } from '../../packages/profiles/src/fits/fit-engine-constants.ts';
import {
  type LoadLatencies,
  measuredLatencies,
  parseRecordedLoad,
  parseServedLoads,
  recordedLoadErrors,
  type ServedLoad,
  simulateServedLoad,
} from '../../packages/profiles/src/fits/served-load.ts';
import type { OperatingPoint } from '../../packages/profiles/src/tables/operating-points.ts';
import {
  errorPercent,
  type RecordedLoadFidelity,
  type ServedLoadFidelity,
  type ServedLoadGroup,
  type SpeculationFidelity,
} from './fidelity.ts';
import { type PointProfile, pointAnswers } from './operating-points.ts';
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
  | { readonly part: 'recorded-load'; readonly path: string }
  | { readonly part: 'points'; readonly served: PointProfile; readonly points: readonly OperatingPoint[] }
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
      return servedLoadFidelity(
        REFERENCE_DATA.servedLoads.flatMap(({ path }) => parseServedLoads(read(path), path)),
      );
    case 'recorded-load':
      return recordedLoadFidelity(asked.path, read);
    case 'replay':
      return replayFidelity(read);
    case 'points':
      return pointAnswers(asked.points, asked.served);
    case 'speculation':
      return speculationFidelity();
  }
}

/** Errors of one set of constants on the loads of real servers. */
export function servedLoadFidelity(loads: readonly ServedLoad[]): ServedLoadFidelity[] {
  const leftOut = leftOutConstants(loads);
  return loads.map((load, i) => ({
    run: load.run,
    model: findModel(load.model).name,
    gpus: load.tp === 1 ? load.gpu : `${load.tp} x ${load.gpu}`,
    group: groupOf(load),
    ...servedLoadErrors(load, vllmConstants('0.15')),
    leftOut: servedLoadErrors(load, leftOut[i]),
  }));
}

function groupOf({ gpu, model }: ServedLoad): ServedLoadGroup {
  if (gpu.startsWith('A100')) return 'A100';
  if (gpu.startsWith('L40S')) return 'L40S';
  return findModel(model).experts === null ? 'dense on H100' : 'mixture on H100';
}

function servedLoadErrors(load: ServedLoad, constants: EngineConstants): LoadLatencies {
  const simulated = simulateServedLoad(load, constants);
  const measured = measuredLatencies(load);
  return {
    ttftMean: errorPercent(simulated.ttftMean, measured.ttftMean),
    ttftP99: errorPercent(simulated.ttftP99, measured.ttftP99),
    e2eMean: errorPercent(simulated.e2eMean, measured.e2eMean),
    itlMean: errorPercent(simulated.itlMean, measured.itlMean),
  };
}

function recordedLoadFidelity(path: string, read: (path: string) => string): RecordedLoadFidelity {
  const servers: readonly Parameters<typeof parseRecordedLoad>[1][] = JSON.parse(
    read(REFERENCE_DATA.recordedLoadServers.path),
  );
  const server = servers.find(({ file }) => path.endsWith(`/${file}`))!;
  const { ttft, e2e } = recordedLoadErrors(parseRecordedLoad(read(path), server));
  return {
    name: server.file.replace('.csv.gz', ''),
    requests: e2e.length,
    ttft: 100 * summarize(Float64Array.from(ttft)).p50,
    e2e: 100 * summarize(Float64Array.from(e2e)).p50,
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
