import { closedBatch, simulateTrace } from '@servegym/simulator';
import { estimatedProfile, findGpu, findModel } from '@servegym/simulator/calibration';
import type { SpeculationFidelity } from './fidelity.ts';

/** Published speedup of EAGLE over plain decoding by batch. */
const MEASURED = new Map([
  [1, 1.96],
  [128, 1.21],
]);
const DEPTH = 3;
const BATCHES = [1, 4, 16, 32, 64, 128];

/** Requests served `batch` at a time on an H100, with and without a draft. */
export function speculationFidelity(): SpeculationFidelity[] {
  const profile = estimatedProfile(findGpu('H100'), findModel('llama-3-8b'), 1);
  return BATCHES.map((batch) => {
    const trace = closedBatch(Math.max(64, 2 * batch), 256, 256);
    const simulatedMs = (speculationDepth: number) =>
      simulateTrace(trace, { profile, maxNumSeqs: batch, speculationDepth }).simulatedMs;
    return { batch, simulated: simulatedMs(0) / simulatedMs(DEPTH), measured: MEASURED.get(batch) ?? null };
  });
}
