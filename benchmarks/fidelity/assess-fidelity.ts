import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Job, JobContext, JobEngine, JobKinds, Json } from '@servegym/jobs';
import { findReferenceFiles, REFERENCE_DATA, type ReferenceFile } from '@servegym/operators/traces';
import {
  calibrateStaticBatches,
  estimatedProfile,
  findGpu,
  findModel,
  findProfile,
  listProfiles,
  parseStaticBatches,
  vllmConstants,
} from '@servegym/profiles';
import { closedBatch, simulateTrace } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import type { EngineConstants } from '../../packages/profiles/src/data/engine-constants.ts';
import { leftOutConstants } from '../../packages/profiles/src/fits/fit-engine-constants.ts';
import {
  latencies,
  latencyErrors,
  parseMeasuredRun,
  parseRecordedLoad,
  parseServedLoads,
  recordedLoadErrors,
  replayRun,
  type ServedLoad,
  simulateServedLoad,
} from '../../packages/profiles/src/fits/served-load.ts';

/** A run on an RTX 4090. */
const { runRequests, runMeta } = REFERENCE_DATA;

export const FIDELITY_FILES: readonly ReferenceFile[] = [
  REFERENCE_DATA.staticBatches,
  ...REFERENCE_DATA.servedLoads,
  REFERENCE_DATA.recordedLoadServers,
  ...REFERENCE_DATA.recordedLoads,
  runRequests,
  runMeta,
];

export const FIDELITY_JOB_KINDS: JobKinds = {
  fidelity: new URL('assess-fidelity.ts', import.meta.url).href,
  points: new URL('assess-points.ts', import.meta.url).href,
};

type Read = (path: string) => string;

/** Parts of the comparison, each for a thread of its own. `of`: the load or the profile that is compared. */
const PARTS = {
  servedLoads: (read: Read) =>
    servedLoadFidelity(REFERENCE_DATA.servedLoads.flatMap(({ path }) => parseServedLoads(read(path), path))),
  replay: replayFidelity,
  speculation: speculationFidelity,
  recordedLoad: recordedLoadFidelity,
  staticBatches: (read: Read, of: string) => staticBatchFidelity(of, read(REFERENCE_DATA.staticBatches.path)),
};
type Part = keyof typeof PARTS;

/** The job `fidelity`: compares the simulator with one part of the measurements. */
export function runJob(input: Json, context: JobContext): Json {
  // The files by their paths, as names of shared bytes.
  const { part, of, files } = input as { part: Part; of: string; files: Record<string, string> };
  const read = (path: string) => new TextDecoder().decode(context.shared(files[path]));
  return PARTS[part](read, of) as unknown as Json;
}

export type Fidelity = Awaited<ReturnType<typeof assessFidelity>>;

/**
 * Compares the simulator with every measurement there is. Errors in percent; signed where a single figure is compared,
 * positive when the simulator says more.
 *
 * @param read Text of a reference file.
 */
export async function assessFidelity(jobs: JobEngine, read: (file: ReferenceFile) => Promise<string>) {
  // The longest first.
  const parts: (readonly [part: Part, needed: readonly ReferenceFile[], of?: string])[] = [
    ['servedLoads', REFERENCE_DATA.servedLoads],
    ['replay', [runRequests, runMeta]],
    ['speculation', []],
    ...REFERENCE_DATA.recordedLoads.map(
      (file) => ['recordedLoad', [REFERENCE_DATA.recordedLoadServers, file], file.path] as const,
    ),
    ...staticBatchProfiles().map(
      (profile) => ['staticBatches', [REFERENCE_DATA.staticBatches], profile] as const,
    ),
  ];
  const list: Job[] = [];
  for (const [part, needed, of = ''] of parts) {
    const files: Record<string, string> = {};
    for (const file of needed)
      files[file.path] = await jobs.share(new TextEncoder().encode(await read(file)));
    list.push({ kind: 'fidelity', input: { part, of, files }, shared: Object.values(files) });
  }
  const results: unknown[] = await jobs.run(list);
  const all = <Name extends Part>(name: Name) =>
    results.filter((_, i) => parts[i][0] === name) as ReturnType<(typeof PARTS)[Name]>[];
  return {
    staticBatches: all('staticBatches').map(({ own }) => own),
    quantized: all('staticBatches').flatMap(({ quantized }) => quantized),
    replay: all('replay')[0],
    servedLoads: all('servedLoads')[0],
    recordedLoads: all('recordedLoad'),
    speculation: all('speculation')[0],
  };
}

/** Error of the simulator against a measurement, %. */
export function errorPercent(simulated: number, measured: number): number {
  return 100 * (simulated / measured - 1);
}

/** The profiles that were fitted to static batches. */
export function staticBatchProfiles(): string[] {
  return listProfiles()
    .filter((profile) => profile.fit?.command.includes('static-batch-latency'))
    .map(({ name }) => name);
}

/** Errors of a profile on batches that its fit has not seen, with its own weights and with quantized ones. */
export function staticBatchFidelity(name: string, table: string) {
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
      /** Batches that overflow the KV pool, which no fit has seen. */
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

/** The profile that kernel times of an RTX 4090 made replays a run on that GPU, of which it has seen nothing. */
function replayFidelity(read: Read) {
  const profile = findProfile('rtx4090-24gb-llama-3-8b');
  const measured = parseMeasuredRun(read(runRequests.path), read(runMeta.path), dirname(runMeta.path));
  const run = replayRun(profile, measured);
  const ttft = summarize(run.ttftMs);
  const e2e = summarize(run.e2eMs);
  return {
    requests: run.completed,
    ttftMean: errorPercent(ttft.mean, measured.ttftMs.mean),
    ttftP99: errorPercent(ttft.p99, measured.ttftMs.p99),
    tpotMean: errorPercent(summarize(run.tpotMs.filter(Number.isFinite)).mean, measured.tpotMs.mean),
    e2eMean: errorPercent(e2e.mean, measured.e2eMs.mean),
    e2eP99: errorPercent(e2e.p99, measured.e2eMs.p99),
    makespan: errorPercent(run.simulatedMs, measured.makespanMs),
    preemptions: run.counters.preemptions,
  };
}

export async function readServedLoads(folder: string): Promise<ServedLoad[]> {
  const files = findReferenceFiles(folder, REFERENCE_DATA.servedLoads);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  return texts.flatMap((text, i) => parseServedLoads(text, files[i]));
}

/** Errors of one set of constants on the loads of real servers. */
export function servedLoadFidelity(loads: readonly ServedLoad[]) {
  const leftOut = leftOutConstants(loads);
  const errors = (load: ServedLoad, constants: EngineConstants) => {
    const relative = latencyErrors(load, simulateServedLoad(load, constants));
    return latencies((what) => 100 * relative[what]);
  };
  return loads.map((load, i) => ({
    run: load.run,
    model: findModel(load.model).name,
    gpus: load.tp === 1 ? load.gpu : `${load.tp} x ${load.gpu}`,
    group: kindOf(load),
    ...errors(load, vllmConstants('0.15')),
    /** The same, under constants that have seen no load of this model on this GPU. */
    leftOut: errors(load, leftOut[i]),
  }));
}

/** Loads whose median errors are told apart. */
export function kindOf({ gpu, model }: ServedLoad): string {
  if (!gpu.startsWith('H100')) return gpu.startsWith('A100') ? 'A100' : 'L40S';
  return findModel(model).experts === null ? 'dense on H100' : 'mixture on H100';
}

/** Errors of the latencies of single requests, median, without their signs. */
function recordedLoadFidelity(read: Read, path: string) {
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

/** Published speedup of EAGLE over plain decoding by batch. */
const MEASURED_SPEEDUP: Readonly<Record<number, number>> = { 1: 1.96, 128: 1.21 };
const DRAFT_TOKENS = 3;
const SPECULATION_BATCHES = [1, 4, 16, 32, 64, 128];

/** Requests served `batch` at a time on an H100, with and without a draft. */
export function speculationFidelity() {
  const profile = estimatedProfile(findGpu('H100'), findModel('llama-3-8b'), 1);
  return SPECULATION_BATCHES.map((batch) => {
    const trace = closedBatch(Math.max(64, 2 * batch), 256, 256);
    const simulatedMs = (speculationDepth: number) =>
      simulateTrace(trace, { profile, maxNumSeqs: batch, speculationDepth }).simulatedMs;
    return {
      batch,
      simulated: simulatedMs(0) / simulatedMs(DRAFT_TOKENS),
      measured: MEASURED_SPEEDUP[batch] ?? null,
    };
  });
}
