import { vllmDefaults } from '@servegym/operators/browser';
import { atListPrice, MODELS } from '@servegym/profiles';
import { type EngineProfile, SimulatorError, type WeightPrecision } from '@servegym/simulator';
import { EFFORTS, type LoadCurve, wholeCurve } from '../../packages/element/src/load-curve.ts';
import { servingCommands } from '../../packages/operators/src/deployment/serving-command.ts';

/** Load and SLO of all pages, those that `<servegym-sim>` begins with. */
export const LOAD = { rate: 8, input: 1024, output: 256, sloTtft: 1000, sloTpot: 50 };

/** One engine with vLLM's defaults, and how it does. */
export interface Variant {
  readonly profile: EngineProfile;
  readonly weights: WeightPrecision;
  readonly curve: LoadCurve;
}

/** A model on a GPU. */
export interface Server extends Variant {
  /** `llama-3-8b/h100-80gb` */
  readonly path: string;
  /** The same with FP8 weights, where that is another precision. */
  readonly fp8: Variant | null;
  /** GPUs of an engine for which there are profiles. */
  readonly counts: readonly number[];
}

function simulated(profile: EngineProfile, weights: WeightPrecision): Variant | null {
  const settings = { ...vllmDefaults(profile), weights };
  const deployment = { name: profile.name, profile, settings, engines: 1, notSimulated: [] };
  try {
    return { profile, weights, curve: wholeCurve(deployment, LOAD, EFFORTS[1]!) };
  } catch (error) {
    // Weights that leave no memory for KV.
    if (error instanceof SimulatorError || error instanceof RangeError) return null;
    throw error;
  }
}

/** The precision of the model's own checkpoint. */
function ownWeights({ model, weights }: EngineProfile): WeightPrecision {
  const own = MODELS.find(({ name }) => name === model.name)?.checkpoint;
  return own !== undefined && own in weights ? own : (Object.keys(weights)[0] as WeightPrecision);
}

/** Share of the most requests/s that it serves at which an engine should meet the SLO. A choice. */
const LEAST_SHARE = 0.25;

/** The engine of the fewest GPUs that meets the SLO under load, or of the most. @param profiles of one model on one GPU */
export function simulatedServer(profiles: readonly EngineProfile[]): Server | null {
  const sorted = profiles.map(atListPrice).sort((a, b) => a.gpu.count - b.gpu.count);
  let best: Variant | null = null;
  for (const profile of sorted) {
    best = simulated(profile, ownWeights(profile)) ?? best;
    const { breaking, points } = best?.curve ?? {};
    if (breaking && breaking.rate >= LEAST_SHARE * points!.at(-1)!.servedRate) break;
  }
  if (best === null) return null;
  const { profile, weights } = best;
  const hasFp8 = weights !== 'FP8' && 'FP8' in profile.weights;
  return {
    ...best,
    path: `${slug(profile.model.name)}/${slug(profile.gpu.name)}`,
    fp8: hasFp8 ? simulated(profile, 'FP8') : null,
    counts: sorted.map(({ gpu }) => gpu.count),
  };
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9.]+/g, '-');
}

/** The line that starts an engine, and what it does not say. */
export function startLine({ profile, weights }: Variant) {
  const [vllm] = servingCommands(profile, { ...vllmDefaults(profile), weights }, 1);
  return vllm!;
}

/** The point of a curve at the breaking point; at the least rate where no rate meets the SLO. */
export function atBreaking({ points, breaking }: LoadCurve) {
  return points.find(({ rate }) => rate === breaking?.rate) ?? points[0]!;
}

/** An entry of `models.json`. Rates in requests/s, times in ms, prices in USD. */
export function apiEntry(server: Server) {
  const { path, profile, weights, curve } = server;
  const { ttft, tpot, kvPeak, usdPerMillionTokens } = atBreaking(curve);
  return {
    ...{ model: profile.model.name, gpu: profile.gpu.name, gpus: curve.gpus, weights, profile: profile.name },
    ...{ page: `${path}/`, command: startLine(server).line },
    load: { input: LOAD.input, output: LOAD.output },
    slo: { ttft_p99_ms: LOAD.sloTtft, tpot_p99_ms: LOAD.sloTpot },
    breaking_rps: curve.breaking?.rate ?? null,
    breaks_first: curve.breaking?.first ?? null,
    at_breaking: {
      ...{ ttft_p50_ms: ttft.p50, ttft_p99_ms: ttft.p99, tpot_p50_ms: tpot.p50, tpot_p99_ms: tpot.p99 },
      ...{ kv_peak: kvPeak, usd_per_million_tokens: usdPerMillionTokens },
    },
    usd_per_hour: curve.usdPerHour,
    rests_on: curve.status,
    ...{ source: curve.source, tpot_error: curve.error.share, ttft_error: curve.error.ttftShare },
  };
}
