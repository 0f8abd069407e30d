import {
  type EngineProfile,
  kvPoolBlocks,
  type Trace,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';

/** The most sequences and tokens of an iteration that settings of ours have. */
const MOST_SEQUENCES = 1024;
/** Draft tokens, and the token after them, that one sequence can gain in an iteration. */
const MOST_TOKENS_OF_A_DRAFT = 9;

/** Work of the requests of a trace, each token once. */
export interface TraceWork {
  /** Prompt tokens that no earlier request has in its prefix blocks. */
  readonly prefill: number;
  /** Pairs of a query token of them and a key token. */
  readonly attention: number;
  /** Output tokens after the first of each request. */
  readonly decodes: number;
  /** Context tokens that these read. */
  readonly context: number;
  /** Whether the trace names prefixes, whose blocks sequences share. */
  readonly sharesBlocks: boolean;
}

export function traceWork({ arrivalMs, inputTokens, outputTokens, prefixBlocks }: Trace): TraceWork {
  const seen = new Set<number>();
  let prefill = 0;
  let attention = 0;
  let decodes = 0;
  let context = 0;
  for (let i = 0; i < arrivalMs.length; i++) {
    const input = inputTokens[i];
    let cached = 0;
    if (prefixBlocks !== undefined) {
      let isPrefix = true;
      for (let at = prefixBlocks.offsets[i]; at < prefixBlocks.offsets[i + 1]; at++) {
        const id = prefixBlocks.ids[at];
        if (isPrefix && seen.has(id)) cached += prefixBlocks.blockTokens;
        else isPrefix = false;
        seen.add(id);
      }
    }
    const computed = Math.max(1, input - cached);
    prefill += computed;
    attention += computed * (input - computed + computed / 2);
    const later = outputTokens[i] - 1;
    decodes += later;
    context += later * input + (later * (later + 1)) / 2;
  }
  return { prefill, attention, decodes, context, sharesBlocks: prefixBlocks !== undefined };
}

/**
 * GPU seconds of one engine without which no schedule of any kind can serve the trace, on however many engines:
 *
 * - every prompt token that no earlier request of the trace has in its prefix blocks is computed once, with its attention;
 * - every output token after the first is computed once (with a draft, nine of them share the work of one sequence);
 * - an iteration decodes at most 1,024 sequences, and no more context than the KV pool holds (without prefix hashes: shared
 *   blocks are counted once in the pool and for each sequence in the context). Each such iteration pays for launches
 *   and for reading the weights that every token needs.
 *
 * Latency objectives, cold starts and idle time are left out, so that it is a bound and not a forecast.
 */
export function leastEngineSeconds(
  profile: EngineProfile,
  precision: WeightPrecision,
  work: TraceWork,
): number {
  const { law } = weightVariant(profile, precision);
  const { prefill, attention, decodes, context, sharesBlocks } = work;
  const shared = profile.speculation === null ? 1 : MOST_TOKENS_OF_A_DRAFT;
  const poolTokens = kvPoolBlocks(profile, precision, false, 1) * profile.memory.blockTokens;
  const iterations = Math.max(
    decodes / shared / MOST_SEQUENCES,
    sharesBlocks ? 0 : context / shared / poolTokens,
  );
  const least = (points: readonly (readonly [number, number])[] | undefined) =>
    points === undefined ? 1 : Math.min(...points.map(([, factor]) => factor));
  const perContextNs =
    Math.min(
      law.perContextTokenNs * least(law.sequenceFactors),
      law.manySequences?.perContextTokenNs ?? Number.POSITIVE_INFINITY,
      law.perContextTokenBesidePrefillNs ?? Number.POSITIVE_INFINITY,
    ) / shared;
  const launchBound = law.launchBound === true;
  const hiding = (launchBound ? law.baseUs : 0) + law.weightReadUs;
  const compute =
    law.perTokenUs * (prefill + decodes) + (launchBound ? (law.perDecodeSequenceUs * decodes) / shared : 0);
  // The fourth-power mean of two times is no less than either.
  const hidingAndComputeUs = Math.max(iterations * hiding, compute) * least(law.tokenFactors);
  const us =
    (launchBound ? 0 : iterations * law.baseUs + (law.perDecodeSequenceUs * decodes) / shared) +
    hidingAndComputeUs +
    (perContextNs * context + law.perPrefillAttentionNs * attention) / 1000;
  return us / 1e6;
}
