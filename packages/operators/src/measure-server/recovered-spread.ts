import {
  type BenchParameter,
  fitLoads,
  fittedLoad,
  type LoadFit,
  type LoadFitOptions,
  type MeasuredLoad,
  mapLaw,
  measuredLoad,
  parameterOf,
} from '@servegym/profiles';
import { type EngineProfile, RandomStream, simulateTrace } from '@servegym/simulator';

/** Spreads of the logarithms of what a drawn server has over what the fitted profile has. */
const DRAWN = { ratio: 0.8, other: 0.4 };
/** Most that a request of a drawn server is off the law, as a factor: outliers of the real one are not repeated. */
const MOST_OFF = 2;

/**
 * Relative spread of each parameter: the error with which the same loads and the same fit recover it from simulated
 * servers like the fitted one, whose coefficients are drawn and known. Their requests are off the law as the measured ones
 * are off the profile. Root mean square over the servers.
 */
export function recoveredSpread(
  loads: readonly MeasuredLoad[],
  profile: EngineProfile,
  options: LoadFitOptions,
  servers: number,
): LoadFit['spread'] {
  const random = new RandomStream(0, 'recovered-spread');
  const squares = new Map<BenchParameter, number>();
  for (let server = 0; server < servers; server += 1) {
    const drawn = drawServer(profile, random);
    const fitted = loads.map((load) => fittedLoad(servedLoad(load, profile, drawn, options)));
    const found = fitLoads(
      fitted,
      loads.map(() => new Set<number>()),
      options,
    );
    const truth = { law: drawn.weights.FP16!.law, requestOverheadMs: drawn.requestOverheadMs };
    for (const name of Object.keys(found.spread) as BenchParameter[]) {
      const error = Math.log(parameterOf(found, name) / parameterOf(truth, name));
      squares.set(name, (squares.get(name) ?? 0) + error ** 2);
    }
  }
  return Object.fromEntries([...squares].map(([name, sum]) => [name, Math.sqrt(sum / servers)]));
}

/** A server with coefficients about those of a profile, and the same time of an idle iteration. */
function drawServer(profile: EngineProfile, random: RandomStream): EngineProfile {
  const variant = profile.weights.FP16!;
  const { baseUs, weightReadUs } = variant.law;
  const ratio = (weightReadUs / baseUs) * random.lognormal(0, DRAWN.ratio);
  const drawn = mapLaw(variant.law, (value) => value * random.lognormal(0, DRAWN.other));
  const idleUs = baseUs + weightReadUs;
  const law = { ...drawn, baseUs: idleUs / (1 + ratio), weightReadUs: (idleUs * ratio) / (1 + ratio) };
  return {
    ...profile,
    requestOverheadMs: profile.requestOverheadMs * random.lognormal(0, DRAWN.other),
    weights: { FP16: { ...variant, law } },
  };
}

/** A load as a drawn server would have served it. */
function servedLoad(
  load: MeasuredLoad,
  profile: EngineProfile,
  drawn: EngineProfile,
  { maxNumSeqs, maxNumBatchedTokens, kvBlocks }: LoadFitOptions,
): MeasuredLoad {
  const { trace } = fittedLoad(load);
  const [expected, served] = [profile, drawn].map((each) => {
    const run = simulateTrace(trace, { profile: each, maxNumSeqs, maxNumBatchedTokens, kvBlocks });
    const byId = new Map(Array.from(run.ids, (id, i) => [id, i]));
    return load.requests.map((_, id) => {
      const i = byId.get(id)!;
      return { ttftMs: run.ttftMs[i], decodeMs: run.e2eMs[i] - run.ttftMs[i] };
    });
  });
  const off = (measured: number, predicted: number) => {
    const factor = measured / predicted;
    return Number.isFinite(factor) ? Math.min(MOST_OFF, Math.max(1 / MOST_OFF, factor)) : 1;
  };
  const requests = load.requests.map((request, i) => {
    const ttftMs = served[i].ttftMs * off(request.ttftMs, expected[i].ttftMs);
    const decodeMs = served[i].decodeMs * off(request.e2eMs - request.ttftMs, expected[i].decodeMs);
    return { ...request, ttftMs, e2eMs: ttftMs + decodeMs };
  });
  return measuredLoad(load.source, requests, load.failed);
}
