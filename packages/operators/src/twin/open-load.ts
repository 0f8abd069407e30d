import { type EngineProfile, type SimulationRun, simulateTrace, type Trace } from '@servegym/simulator';
import { openProbe, type Probe } from './probe.ts';
import type { ServerFacts } from './start-profile.ts';

/** Fewest and most requests of an open load. */
const REQUESTS = [24, 400] as const;
/** Requests of the simulated batch that shows the rate at saturation. */
const SATURATING = 200;

/** An open load at a share of the rate that saturates the server, as far as the profile tells. */
export function openLoad(
  share: number,
  profile: EngineProfile,
  facts: ServerFacts,
  { seconds, seed }: { readonly seconds: number; readonly seed: number },
): Probe {
  const saturating = openProbe(facts, 1e6, SATURATING, 0);
  const rate = (1000 * share * SATURATING) / simulateProbe(saturating, profile, facts).simulatedMs;
  const count = Math.round(Math.min(Math.max(seconds * rate, REQUESTS[0]), REQUESTS[1]));
  // A resumed run names the same load the same, whatever the rate has come to.
  return { ...openProbe(facts, rate, count, seed), name: `${Math.round(100 * share)} % of saturation` };
}

/** A probe on the simulated server. */
export function simulateProbe(
  { requests }: Pick<Probe, 'requests'>,
  profile: EngineProfile,
  {
    maxNumSeqs,
    maxNumBatchedTokens,
    kvBlocks,
  }: Pick<ServerFacts, 'maxNumSeqs' | 'maxNumBatchedTokens' | 'kvBlocks'>,
): SimulationRun {
  const trace = {
    source: 'probe',
    arrivalMs: Float64Array.from(requests, ({ atMs }) => atMs),
    inputTokens: Int32Array.from(requests, ({ inputTokens }) => inputTokens),
    outputTokens: Int32Array.from(requests, ({ outputTokens }) => outputTokens),
  };
  return simulateTrace(trace, { profile, maxNumSeqs, maxNumBatchedTokens, kvBlocks });
}

/** Loads that confirm a profile: rates from a fifth of saturation to all of it, with lengths of their own. */
export function confirmingLoads(profile: EngineProfile, facts: ServerFacts, seconds: number): Probe[] {
  return [0.2, 0.4, 0.6, 0.8, 1].map((share, i) =>
    openLoad(share, profile, facts, { seconds, seed: 1000 + i }),
  );
}

/** A trace as a load. */
export function traceProbe(name: string, { arrivalMs, inputTokens, outputTokens }: Trace): Probe {
  const requests = Array.from(arrivalMs, (atMs, i) => ({
    atMs: atMs - arrivalMs[0],
    inputTokens: inputTokens[i],
    outputTokens: outputTokens[i],
  }));
  return { name, requests, isSequential: false };
}
