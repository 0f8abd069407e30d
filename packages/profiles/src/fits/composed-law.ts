import { type IterationLaw, IterationTimer, TICKS_PER_US } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { roundLaw } from './fit-law.ts';
import { type ComposedIteration, type IterationComposition, softmax } from './iteration-composition.ts';

/** Kinds of iterations that errors are stated for. */
type ComposedRegion = 'decode, up to 32' | 'decode, above 32' | 'prefill' | 'mixed';

/** Errors of a law against the composition that it was made from, percent of the composed time. */
export interface RegionError {
  readonly region: ComposedRegion;
  readonly iterations: number;
  readonly meanPercent: number;
  readonly worstPercent: number;
}

export type ComposedLaw = ReturnType<typeof composedLaw>;

/** Most sequences that a law is made for: vLLM's largest default. */
export const MOST_SEQUENCES = 1024;
/** Most tokens of an iteration that a law is made for. */
const MOST_TOKENS = 16_384;
/** Tokens up to which an iteration is taken to decode; those of more prefill. */
const MOST_DECODES = 512;
/** Powers of two, the sizes between them, and those right behind where engines change the kernel. */
const COUNTS = [
  1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 48, 64, 65, 80, 96, 112, 128, 129, 160, 192, 224, 256, 257, 320, 384,
  448, 512, 513, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2304, 2560, 3072, 4096, 6144, 8192, 12_288,
  16_384,
];
/** Tokens at which nearly all experts of a mixture are read. */
const ALL_EXPERTS = 256;
/** Sizes around a chunk over which its time is averaged: chunks have any length, and the tables of some GPUs are noisy. */
const AROUND = [0.84, 0.92, 1, 1.08, 1.16];
/** Sequences whose attention `perContextTokenNs` is that of. */
const USUAL_SEQUENCES = 64;
/** Points that lie so near to the line between their neighbours are left out, relative. */
const NEAR = 0.004;

/**
 * The law with the times of a composition: those of iterations that only decode up to 512 tokens, exactly so at powers of
 * two and the sizes between them, and those of iterations that only prefill above.
 *
 * @param kvTokens Tokens of the KV pool: errors are stated for iterations that fit it.
 */
export function composedLaw(
  composition: IterationComposition,
  { isMixture, kvTokens }: { readonly isMixture: boolean; readonly kvTokens: number },
) {
  const decodes = COUNTS.filter((count) => count <= MOST_DECODES);
  const baseUs = composition.decodeRestUs(1);
  const perDecodeSequenceUs = slope(
    decodes.slice(1).map((count) => ({
      x: count - 1,
      y: composition.decodeRestUs(count) - baseUs,
      scale: composition.weightsUs(count) + composition.decodeRestUs(count),
    })),
  );
  const prefillLaunchUs = Math.max(0, composition.prefillRestUs(0) - baseUs);
  const weightReadUs = composition.weightsUs(isMixture ? ALL_EXPERTS : 1);
  const long = MOST_TOKENS / 2;
  const tokensUs = (tokens: number) => {
    if (tokens <= MOST_DECODES) return composition.weightsUs(tokens);
    const perToken = AROUND.map((factor) => {
      const around = Math.round(tokens * factor);
      const attention = composition.prefillRestUs(around) - composition.prefillRestUs(0);
      return (composition.weightsUs(around) + attention) / around;
    });
    return mean(perToken) * tokens;
  };
  const perTokenUs = tokensUs(long) / long;
  const perContextTokenNs = composition.contextUs(USUAL_SEQUENCES) * 1e3;
  const law = roundLaw({
    baseUs: Math.max(0, baseUs - perDecodeSequenceUs),
    ...(composition.eagerPrefill && { launchBound: 'prefill' }),
    weightReadUs,
    perTokenUs,
    tokenFactors: thinned(
      COUNTS.map((count) => [count, tokensUs(count) / softmax(weightReadUs, perTokenUs * count)]),
    ),
    perDecodeSequenceUs,
    perContextTokenNs,
    ...(perContextTokenNs > 0 && {
      sequenceFactors: thinned(
        COUNTS.filter((count) => count <= MOST_SEQUENCES).map((count) => [
          count,
          (composition.contextUs(count) * 1e3) / perContextTokenNs,
        ]),
      ),
    }),
    ...(prefillLaunchUs > 0 && { prefillLaunchUs }),
    perPrefillAttentionNs: composition.pairUs() * 1e3,
  });
  return { law, errors: errorsOf(law, composition, kvTokens) };
}

/** Least squares through the origin, of errors relative to `scale`. */
function slope(
  points: readonly { readonly x: number; readonly y: number; readonly scale: number }[],
): number {
  let [xy, xx] = [0, 0];
  for (const { x, y, scale } of points) {
    xy += (x * y) / scale ** 2;
    xx += (x / scale) ** 2;
  }
  return Math.max(0, xy / xx);
}

type FactorPoint = NonNullable<IterationLaw['tokenFactors']>[number];

/** The points without those that the line between their neighbours is near to. */
function thinned(points: readonly FactorPoint[]): FactorPoint[] {
  const kept: FactorPoint[] = [points[0]];
  let from = 0;
  for (let to = 2; to < points.length; to += 1) {
    const [x0, y0] = points[from];
    const [x1, y1] = points[to];
    const isNear = points.slice(from + 1, to).every(([x, y]) => {
      const line = y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
      return Math.abs(line / y - 1) <= NEAR;
    });
    if (isNear) continue;
    kept.push(points[to - 1]);
    from = to - 1;
  }
  kept.push(points[points.length - 1]);
  return kept.map(([count, factor]) => [count, Number(factor.toPrecision(4))]);
}

const CONTEXTS = [200, 700, 2000, 6000, 16_000];
const DECODES = [1, 3, 5, 10, 20, 28, 40, 80, 112, 160, 224, 320, 448];
const CHUNKS = [100, 300, 700, 1300, 2500, 5000, 10_000];

function errorsOf(
  law: IterationLaw,
  composition: IterationComposition,
  kvTokens: number,
): readonly RegionError[] {
  const iterations: { region: ComposedRegion; iteration: ComposedIteration }[] = [];
  for (const context of CONTEXTS) {
    for (const decodes of DECODES) {
      if (decodes * context > kvTokens) continue;
      const region = decodes <= 32 ? 'decode, up to 32' : 'decode, above 32';
      iterations.push({ region, iteration: { chunk: 0, cached: 0, decodes, context } });
      for (const chunk of [256, 1024, 2048]) {
        iterations.push({ region: 'mixed', iteration: { chunk, cached: 0, decodes, context } });
      }
    }
  }
  for (const chunk of CHUNKS) {
    for (const cached of [0, 4096]) {
      iterations.push({ region: 'prefill', iteration: { chunk, cached, decodes: 0, context: 0 } });
    }
  }
  const timer = new IterationTimer(law);
  const errors = new Map<ComposedRegion, number[]>();
  for (const { region, iteration } of iterations) {
    const { chunk, cached, decodes, context } = iteration;
    const fixed = timer.fixedTicks(chunk + decodes, decodes, chunk * (cached + chunk / 2));
    const ticks = fixed + timer.contextTicks(decodes, chunk) * decodes * context;
    const error = 100 * Math.abs(ticks / TICKS_PER_US / composition.iterationUs(iteration) - 1);
    errors.set(region, [...(errors.get(region) ?? []), error]);
  }
  return [...errors].map(([region, values]) => ({
    region,
    iterations: values.length,
    meanPercent: Number(mean(values).toFixed(2)),
    worstPercent: Number(Math.max(...values).toFixed(2)),
  }));
}
