import { closedBatch, type EngineProfile, listProfiles, simulateTrace, summarize } from '@servegym/simulator';
import {
  calibrateKernels,
  calibrateStaticBatches,
  type EngineConstants,
  estimatedProfile,
  findGpu,
  findModel,
  leftOutConstants,
  parseKernelTables,
  parseMeasuredRun,
  parseServedLoads,
  parseStaticBatches,
  replayRun,
  type ServedLoad,
  simulateServedLoad,
  VLLM_V1,
} from '@servegym/simulator/calibration';

const STATIC_BATCHES = 'measured/static-batch-latency.csv';
const SERVED_LOADS = 'measured/vllm-0.15-served-load.json';
const KERNELS = 'kernel-profiles/rtx4090-llama-3.1-8b-bf16-tp1';
const RUN = 'vllm-runs/rtx4090-llama-3.1-8b';

/** Published speedup of EAGLE over plain decoding by batch. */
const MEASURED_SPECULATION = new Map([
  [1, 1.96],
  [128, 1.21],
]);
const SPECULATION_DEPTH = 3;
const SPECULATION_BATCHES = [1, 4, 16, 32, 64, 128];

/** Errors in percent; signed where a single figure is compared, positive when the simulator says more. */
export interface Fidelity {
  readonly staticBatches: readonly StaticBatchFidelity[];
  readonly quantized: readonly QuantizedFidelity[];
  readonly replay: ReplayFidelity;
  readonly servedLoads: readonly ServedLoadFidelity[];
  readonly speculation: readonly SpeculationFidelity[];
}

export interface StaticBatchFidelity {
  readonly profile: string;
  readonly rows: number;
  readonly leftOutMean: number;
  readonly leftOutWorst: number;
  /** Batches that overflow the KV pool, which no fit has seen. */
  readonly overflowing: readonly number[];
}

export interface QuantizedFidelity {
  readonly profile: string;
  readonly weights: string;
  readonly rows: number;
  readonly leftOutMean: number;
  readonly leftOutWorst: number;
}

export interface ReplayFidelity {
  readonly requests: number;
  readonly ttftMean: number;
  readonly ttftP99: number;
  readonly tpotMean: number;
  readonly e2eMean: number;
  readonly e2eP99: number;
  readonly makespan: number;
  readonly preemptions: number;
}

export interface ServedLoadFidelity extends ServedLoadErrors {
  readonly run: string;
  readonly model: string;
  readonly gpus: number;
  /** The same three, under constants that have not seen this load. */
  readonly leftOut: ServedLoadErrors;
}

export interface ServedLoadErrors {
  readonly ttftMean: number;
  readonly ttftP99: number;
  readonly e2eMean: number;
}

export interface SpeculationFidelity {
  readonly batch: number;
  readonly simulated: number;
  readonly measured: number | null;
}

/**
 * Compares the simulator with every measurement there is.
 * @param read Text of a file of the data, by its path there.
 */
export async function assessFidelity(read: (path: string) => Promise<string>): Promise<Fidelity> {
  const rows = parseStaticBatches(await read(STATIC_BATCHES), STATIC_BATCHES);
  const calibrations = listProfiles()
    .filter((profile) => profile.fit?.command.includes('--static-batch'))
    .map((profile) => ({
      profile,
      calibration: calibrateStaticBatches(rows, {
        gpu: findGpu(profile.gpu.name),
        model: findModel(profile.model.name),
        count: profile.gpu.count,
        memoryOverheadGiB: profile.memory.overheadGiB,
        source: profile.source,
        command: profile.fit!.command,
      }),
    }));
  return {
    staticBatches: calibrations.map(({ profile, calibration }) => ({
      profile: profile.name,
      rows: calibration.rows.length,
      leftOutMean: calibration.profile.fit!.heldOutMeanErrorPercent,
      leftOutWorst: calibration.profile.fit!.heldOutWorstErrorPercent,
      overflowing: calibration.overflowing.map((row) => error(row.predictedS, row.latencyS)),
    })),
    quantized: calibrations.flatMap(({ profile, calibration }) =>
      Object.entries(calibration.quantized).map(([weights, fitted]) => ({
        profile: profile.name,
        weights,
        rows: fitted.rows,
        leftOutMean: fitted.heldOutMeanErrorPercent,
        leftOutWorst: fitted.heldOutWorstErrorPercent,
      })),
    ),
    replay: await replay(read),
    servedLoads: servedLoads(parseServedLoads(await read(SERVED_LOADS), SERVED_LOADS)),
    speculation: speculation(estimatedProfile(findGpu('H100'), findModel('llama-3-8b'), 1)),
  };
}

function servedLoads(loads: readonly ServedLoad[]): ServedLoadFidelity[] {
  const leftOut = leftOutConstants(loads);
  return loads.map((load, i) => ({
    run: load.run,
    model: findModel(load.model).name,
    gpus: load.tp,
    ...servedLoadErrors(load, VLLM_V1),
    leftOut: servedLoadErrors(load, leftOut[i]!),
  }));
}

function servedLoadErrors(load: ServedLoad, constants: EngineConstants): ServedLoadErrors {
  const run = simulateServedLoad(load, constants);
  const ttft = summarize(run.ttftMs);
  return {
    ttftMean: error(ttft.mean, load.ttft_mean_ms),
    ttftP99: error(ttft.p99, load.ttft_p99_ms),
    e2eMean: error(summarize(run.e2eMs).mean, load.e2e_mean_ms),
  };
}

/** The kernels of an RTX 4090 make a profile; the profile replays a run on that GPU, of which it has seen nothing. */
async function replay(read: (path: string) => Promise<string>): Promise<ReplayFidelity> {
  const tables = parseKernelTables(
    {
      'dense.csv': await read(`${KERNELS}/dense.csv`),
      'per_sequence.csv': await read(`${KERNELS}/per_sequence.csv`),
      'attention.csv': await read(`${KERNELS}/attention.csv`),
    },
    KERNELS,
  );
  const { profile } = calibrateKernels(tables, {
    gpu: findGpu('RTX 4090'),
    model: findModel('llama-3-8b'),
    source: KERNELS,
    command: '-',
  });
  const measured = parseMeasuredRun(await read(`${RUN}/requests.jsonl`), await read(`${RUN}/meta.json`), RUN);
  const run = replayRun(profile, measured);
  const ttft = summarize(run.ttftMs);
  const e2e = summarize(run.e2eMs);
  return {
    requests: run.completed,
    ttftMean: error(ttft.mean, measured.ttftMs.mean),
    ttftP99: error(ttft.p99, measured.ttftMs.p99),
    tpotMean: error(summarize(run.tpotMs.filter(Number.isFinite)).mean, measured.tpotMs.mean),
    e2eMean: error(e2e.mean, measured.e2eMs.mean),
    e2eP99: error(e2e.p99, measured.e2eMs.p99),
    makespan: error(run.simulatedMs, measured.makespanMs),
    preemptions: run.counters.preemptions,
  };
}

/** Requests served `batch` at a time, with and without a draft. */
function speculation(profile: EngineProfile): SpeculationFidelity[] {
  return SPECULATION_BATCHES.map((batch) => {
    const trace = closedBatch(Math.max(64, 2 * batch), 256, 256);
    const simulatedMs = (speculationDepth: number) =>
      simulateTrace(trace, { profile, maxNumSeqs: batch, speculationDepth }).simulatedMs;
    return {
      batch,
      simulated: simulatedMs(0) / simulatedMs(SPECULATION_DEPTH),
      measured: MEASURED_SPECULATION.get(batch) ?? null,
    };
  });
}

function error(simulated: number, measured: number): number {
  return 100 * (simulated / measured - 1);
}
