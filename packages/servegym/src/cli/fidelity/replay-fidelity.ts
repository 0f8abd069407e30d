import { summarize } from '@servegym/simulator';
import {
  calibrateKernels,
  findGpu,
  findModel,
  parseKernelTables,
  parseMeasuredRun,
  replayRun,
} from '@servegym/simulator/calibration';
import { errorPercent, type ReplayFidelity } from './fidelity.ts';

const KERNELS = 'kernel-profiles/rtx4090-llama-3.1-8b-bf16-tp1';
const RUN = 'vllm-runs/rtx4090-llama-3.1-8b';

/** Where the kernel times of an RTX 4090 and a run on that GPU lie in the data. */
export const REPLAY_FILES = {
  dense: `${KERNELS}/dense.csv`,
  perSequence: `${KERNELS}/per_sequence.csv`,
  attention: `${KERNELS}/attention.csv`,
  requests: `${RUN}/requests.jsonl`,
  meta: `${RUN}/meta.json`,
} as const;

/**
 * The kernels of an RTX 4090 make a profile; the profile replays a run on that GPU, of which it has seen nothing.
 *
 * @param read Text of a file of the data, by its path there.
 */
export function replayFidelity(read: (path: string) => string): ReplayFidelity {
  const tables = parseKernelTables(
    {
      'dense.csv': read(REPLAY_FILES.dense),
      'per_sequence.csv': read(REPLAY_FILES.perSequence),
      'attention.csv': read(REPLAY_FILES.attention),
    },
    KERNELS,
  );
  const { profile } = calibrateKernels(tables, {
    gpu: findGpu('RTX 4090'),
    model: findModel('llama-3-8b'),
    source: KERNELS,
    command: '-',
  });
  const measured = parseMeasuredRun(read(REPLAY_FILES.requests), read(REPLAY_FILES.meta), RUN);
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
