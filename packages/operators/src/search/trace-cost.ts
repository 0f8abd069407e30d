import {
  type EngineProfile,
  kvPoolBlocks,
  kvTokens,
  type Trace,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';

/** The most sequences and tokens of an iteration that settings of ours have. */
const MOST_SEQUENCES = 1024;
/** Draft tokens, and the token after them, that one sequence can gain in an iteration. */
const MOST_TOKENS_OF_A_DRAFT = 9;

/** Work of the requests of a trace, each token once. */
export function traceWork({ arrivalMs, inputTokens, outputTokens, prefixBlocks }: Trace) {
  const seen = new Set<number>();
  /** Prompt tokens that no earlier request has in its prefix blocks. */
  let prefill = 0;
  /** Pairs of a query token of them and a key token. */
  let attention = 0;
  /** Output tokens after the first of each request. */
  let decodes = 0;
  /** Context tokens that these read. */
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
  // Sequences share the blocks of prefixes that the trace names.
  return { prefill, attention, decodes, context, sharesBlocks: prefixBlocks !== undefined };
}
export type TraceWork = ReturnType<typeof traceWork>;

/** Settings that bound what an engine does at its best; those that are left out are free. */
interface BoundingSettings {
  readonly weights: WeightPrecision;
  readonly maxNumSeqs?: number;
  readonly speculationDepth?: number;
}

/**
 * GPU seconds of one engine without which no schedule of any kind can serve the trace, on however many engines:
 *
 * - every prompt token that no earlier request of the trace has in its prefix blocks is computed once, with its attention;
 * - every output token after the first is computed once (with a draft, nine of them share the work of one sequence);
 * - an iteration decodes at most `maxNumSeqs` sequences, by default 1,024, and no more context than the KV pool holds (without prefix hashes: shared
 *   blocks are counted once in the pool and for each sequence in the context). Each such iteration pays for launches
 *   and for reading the weights that every token needs.
 *
 * Latency objectives, cold starts and idle time are left out, so that it is a bound and not a forecast.
 */
export function leastEngineSeconds(
  profile: EngineProfile,
  { weights: precision, maxNumSeqs: most = MOST_SEQUENCES, ...settings }: BoundingSettings,
  { prefill, attention, decodes, context, sharesBlocks }: TraceWork,
): number {
  const { speculationDepth = profile.speculation === null ? 0 : MOST_TOKENS_OF_A_DRAFT - 1 } = settings;
  const { law } = weightVariant(profile, precision);
  const launchBound = law.launchBound === true;
  const least = (points: readonly (readonly [number, number])[] | undefined) =>
    points === undefined ? 1 : Math.min(...points.map(([, factor]) => factor));
  const contextNs = Math.min(
    law.perContextTokenNs * least(law.sequenceFactors),
    law.manySequences?.perContextTokenNs ?? Number.POSITIVE_INFINITY,
    law.perContextTokenBesidePrefillNs ?? Number.POSITIVE_INFINITY,
  );
  // Seconds of an iteration's launches, and of its weight reads; of a token, and of a sequence that decodes.
  const [base, weightRead] = [1e-6 * law.baseUs, 1e-6 * law.weightReadUs];
  const [token, decodeSequence] = [1e-6 * law.perTokenUs, 1e-6 * law.perDecodeSequenceUs];
  /** Tokens that share the work of one sequence. */
  const shared = speculationDepth + 1;
  const poolTokens = kvTokens(profile, kvPoolBlocks(profile, precision, false, 1));
  const iterations = Math.max(decodes / shared / most, sharesBlocks ? 0 : context / shared / poolTokens);
  const sequences = (decodeSequence * decodes) / shared;
  const hiding = (launchBound ? base : 0) + weightRead;
  const compute = token * (prefill + decodes) + (launchBound ? sequences : 0);
  return (
    (launchBound ? 0 : iterations * base + sequences) +
    // The fourth-power mean of two times is no less than either.
    Math.max(iterations * hiding, compute) * least(law.tokenFactors) +
    ((1e-6 * contextNs) / 1000 / shared) * context +
    ((1e-6 * law.perPrefillAttentionNs) / 1000) * attention
  );
}

/** Length of a window of demand, s: a choice. */
const WINDOW_S = 60;
/** An engine that is not needed stays for so long: the stabilisation window of Kubernetes' HorizontalPodAutoscaler, s. */
const STAY_S = 300;
/** An engine is billed for so long before it serves: in the middle of the 30 to 120 s that vLLM takes to start, s. */
const COLD_START_S = 60;

/**
 * Mean number of engines that are billed over a trace when they are started and stopped with the demand, which is
 * known a cold start ahead. The demand of a window is its share of the work of all requests (prompt tokens, and output
 * tokens at `outputWeight`), as requests/s of mean work; an engine serves `sustained` of them.
 *
 * @param fewest Engines that are kept all the time. Default 1.
 */
export function autoscaledEngines(
  { arrivalMs, inputTokens, outputTokens }: Trace,
  sustained: number,
  options: { readonly most: number; readonly outputWeight: number; readonly fewest?: number },
): number {
  const { most, outputWeight, fewest = 1 } = options;
  const requests = arrivalMs.length;
  const windows = Math.floor(arrivalMs[requests - 1] / (1000 * WINDOW_S)) + 1;
  const work = new Float64Array(windows);
  let total = 0;
  for (let i = 0; i < requests; i++) {
    const own = inputTokens[i] + outputWeight * outputTokens[i];
    work[Math.floor(arrivalMs[i] / (1000 * WINDOW_S))] += own;
    total += own;
  }
  // A trace that is shorter is one window.
  const windowS = Math.min(WINDOW_S, Math.max(1e-3, arrivalMs[requests - 1] / 1000));
  const needed = work.map((own) => {
    const demand = (own / total) * (requests / windowS);
    return Math.min(most, Math.max(fewest, Math.ceil(demand / sustained)));
  });
  const [before, after] = [COLD_START_S / WINDOW_S, STAY_S / WINDOW_S];
  let billed = 0;
  for (let at = 0; at < windows; at++) {
    billed += Math.max(...needed.subarray(Math.max(0, at - after), Math.min(windows, at + before + 1)));
  }
  return billed / windows;
}
