import { dirname } from 'node:path';
import { REFERENCE_DATA } from '@servegym/operators/traces';
import { calibrateKernels, findGpu, findModel, parseKernelTables } from '@servegym/profiles';
import { summarize } from '@servegym/simulator/statistics';
import { parseMeasuredRun, replayRun } from '../../packages/profiles/src/fits/measured-run.ts';
import { errorPercent, type ReplayFidelity } from './fidelity.ts';

const { denseKernels, sequenceKernels, attentionKernels, runRequests, runMeta } = REFERENCE_DATA;
const KERNELS = dirname(denseKernels.path);

/** Kernel times of an RTX 4090, and a run on that GPU. */
export const REPLAY_FILES = [denseKernels, sequenceKernels, attentionKernels, runRequests, runMeta];

/**
 * The kernels of an RTX 4090 make a profile; the profile replays a run on that GPU, of which it has seen nothing.
 *
 * @param read Text of a reference file, by its path.
 */
export function replayFidelity(read: (path: string) => string): ReplayFidelity {
  const tables = parseKernelTables(
    {
      'dense.csv': read(denseKernels.path),
      'per_sequence.csv': read(sequenceKernels.path),
      'attention.csv': read(attentionKernels.path),
    },
    KERNELS,
  );
  const { profile } = calibrateKernels(tables, {
    gpu: findGpu('RTX 4090'),
    model: findModel('llama-3-8b'),
    source: KERNELS,
    command: '-',
  });
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
