import type {
  ExpertWeights,
  FactorPoint,
  IterationLaw,
  SpeculationProfile,
} from '../profiles/engine-profile.ts';
import { TICKS_PER_NS, TICKS_PER_US, wholeTicks } from './ticks.ts';

/** Tokens up to which the time of an iteration is remembered: a choice, the budget of most servers. */
const REMEMBERED_TOKENS = 8193;
const tables = new WeakMap<IterationLaw, Float64Array>();

/**
 * An `IterationLaw` in ticks. The part that depends on the context is a whole number of ticks for each context token,
 * so that it adds up exactly over many iterations; the rest is rounded once an iteration.
 */
export class IterationTimer {
  declare private readonly base: number;
  declare private readonly prefillLaunch: number;
  /** Whether launches hide the compute of a prefill. */
  declare private readonly prefillBound: boolean;
  /** Ticks that hide compute: of reading the weights, but for the experts of a mixture, and of launches that bind. */
  declare private readonly hiding: number;
  declare private readonly hiding4: number;
  declare private readonly experts: ExpertWeights | null;
  declare private readonly hidingOfAll: number;
  declare private readonly hidingOfAll4: number;
  declare private readonly perToken: number;
  declare private readonly perSequence: number;
  declare private readonly hiddenPerSequence: number;
  declare private readonly perAttention: number;
  declare private readonly perContext: number;
  declare private readonly manySequences: number;
  declare private readonly perContextOfMany: number;
  declare private readonly perContextBesidePrefill: number | null;
  declare private readonly tokenFactors: readonly FactorPoint[] | null;
  declare private readonly sequenceFactors: readonly FactorPoint[] | null;
  /** Ticks of a context token by number of sequences, filled when first needed; only with factors. */
  declare private readonly perContextBySequences: Float64Array;
  /** Ticks of reading weights and of compute by number of tokens, filled when first needed; the same for all engines of a law. */
  declare private readonly byTokens: Float64Array;
  /** Fixed ticks of a decode-only iteration by number of sequences, filled when first needed. */
  private readonly decodeOnly = new Float64Array(1025).fill(-1);

  constructor(law: IterationLaw) {
    const launchBound = law.launchBound === true;
    this.prefillBound = law.launchBound === 'prefill';
    this.base = launchBound ? 0 : law.baseUs * TICKS_PER_US;
    this.prefillLaunch = (law.prefillLaunchUs ?? 0) * TICKS_PER_US;
    this.hiding = ((launchBound ? law.baseUs : 0) + law.weightReadUs) * TICKS_PER_US;
    this.hiding4 = fourthPower(this.hiding);
    this.experts = law.experts ?? null;
    this.hidingOfAll = this.hiding + (law.experts?.readUs ?? 0) * TICKS_PER_US;
    this.hidingOfAll4 = fourthPower(this.hidingOfAll);
    this.perToken = law.perTokenUs * TICKS_PER_US;
    const perSequence = law.perDecodeSequenceUs * TICKS_PER_US;
    this.perSequence = launchBound ? 0 : perSequence;
    this.hiddenPerSequence = launchBound ? perSequence : 0;
    this.perAttention = law.perPrefillAttentionNs * TICKS_PER_NS;
    this.perContext = Math.round(law.perContextTokenNs * TICKS_PER_NS);
    this.manySequences = law.manySequences?.above ?? Number.POSITIVE_INFINITY;
    this.perContextOfMany = Math.round((law.manySequences?.perContextTokenNs ?? 0) * TICKS_PER_NS);
    this.perContextBesidePrefill =
      law.perContextTokenBesidePrefillNs === undefined
        ? null
        : Math.round(law.perContextTokenBesidePrefillNs * TICKS_PER_NS);
    this.tokenFactors = law.tokenFactors ?? null;
    this.sequenceFactors = law.sequenceFactors ?? null;
    let byTokens = tables.get(law);
    if (byTokens === undefined) {
      byTokens = new Float64Array(REMEMBERED_TOKENS).fill(Number.NaN);
      tables.set(law, byTokens);
    }
    this.byTokens = byTokens;
    this.perContextBySequences = new Float64Array(this.sequenceFactors === null ? 0 : 1025).fill(-1);
  }

  /**
   * Ticks of an iteration without its context part.
   * @param tokens tokens put through the weights
   * @param sequences decoding sequences
   * @param attention sum over prefill chunks of chunk * (start + chunk / 2)
   */
  fixedTicks(tokens: number, sequences: number, attention: number): number {
    let hidingAndCompute = tokens < this.byTokens.length ? this.byTokens[tokens] : Number.NaN;
    // Not a number: not known yet, or of so many tokens, or one that depends on the sequences.
    if (!(hidingAndCompute >= 0)) hidingAndCompute = this.hidingAndCompute(tokens, sequences);
    if (this.prefillBound && attention > 0) {
      const hidden = softmax4(
        fourthPower(this.prefillLaunch),
        hidingAndCompute + this.perAttention * attention,
      );
      return wholeTicks(this.base + hidden + this.perSequence * sequences);
    }
    const base = attention > 0 ? this.base + this.prefillLaunch : this.base;
    return wholeTicks(base + hidingAndCompute + this.perSequence * sequences + this.perAttention * attention);
  }

  /** Ticks of reading the weights and of the compute that they hide, remembered where they follow from the tokens. */
  private hidingAndCompute(tokens: number, sequences: number): number {
    const compute = this.perToken * tokens + this.hiddenPerSequence * sequences;
    const hiding4 = this.experts === null ? this.hiding4 : this.hidingOfMixture4(this.experts, tokens);
    const softmax = softmax4(hiding4, compute);
    const ticks = this.tokenFactors === null ? softmax : softmax * factorAt(this.tokenFactors, tokens);
    if (this.hiddenPerSequence === 0 && tokens < this.byTokens.length) this.byTokens[tokens] = ticks;
    return ticks;
  }

  /** Fourth power of the ticks of reading the weights that `tokens` tokens need. */
  private hidingOfMixture4({ count, perToken, readUs }: ExpertWeights, tokens: number): number {
    let missed = 1;
    // Squaring, for the same reason.
    for (let power = 1 - perToken / count, rest = tokens; rest > 0; rest >>= 1) {
      if ((rest & 1) === 1) missed *= power;
      power *= power;
    }
    const hiding = this.hiding + readUs * TICKS_PER_US * (1 - missed);
    // Many tokens need all weights.
    return hiding === this.hidingOfAll ? this.hidingOfAll4 : fourthPower(hiding);
  }

  /** Ticks for each context token that `sequences` decoding sequences read, beside so many tokens of prefill. */
  contextTicks(sequences: number, prefillTokens = 0): number {
    if (prefillTokens > 0 && this.perContextBesidePrefill !== null) return this.perContextBesidePrefill;
    if (this.sequenceFactors !== null) return this.perContextOf(this.sequenceFactors, sequences);
    if (sequences <= this.manySequences) return this.perContext;
    return Math.max(this.perContextOfMany, Math.round((this.perContext * this.manySequences) / sequences));
  }

  /** Ticks of a context token by the factor of so many sequences, remembered. */
  private perContextOf(factors: readonly FactorPoint[], sequences: number): number {
    const known = this.perContextBySequences[sequences];
    if (known >= 0) return known;
    const ticks = Math.round(this.perContext * factorAt(factors, sequences));
    if (sequences < this.perContextBySequences.length) this.perContextBySequences[sequences] = ticks;
    return ticks;
  }

  /** `fixedTicks(sequences, sequences, 0)`, remembered. */
  decodeTicks(sequences: number): number {
    if (sequences >= this.decodeOnly.length) return this.fixedTicks(sequences, sequences, 0);
    const known = this.decodeOnly[sequences];
    if (known >= 0) return known;
    const ticks = this.fixedTicks(sequences, sequences, 0);
    this.decodeOnly[sequences] = ticks;
    return ticks;
  }
}

/** The softmax of a time, given by its fourth power, and another. */
function softmax4(hiding4: number, compute: number): number {
  return Math.sqrt(Math.sqrt(hiding4 + fourthPower(compute)));
}

/** The factor at a count: linear between the points, that of the nearest point outside of them. */
function factorAt(points: readonly FactorPoint[], count: number): number {
  let low = 0;
  let high = points.length - 1;
  if (count <= points[0][0]) return points[0][1];
  if (count >= points[high][0]) return points[high][1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= count) low = middle;
    else high = middle;
  }
  const [from, before] = points[low];
  const [to, after] = points[high];
  return before + ((after - before) * (count - from)) / (to - from);
}

/** By products and sqrt alone, which round the same everywhere; `**` does not promise that. */
function fourthPower(x: number): number {
  const square = x * x;
  return square * square;
}

/** Time of drafting, in ticks. */
export class DraftTimer {
  declare private readonly base: number;
  declare private readonly perToken: number;
  declare private readonly perContext: number;

  constructor(speculation: SpeculationProfile) {
    this.base = speculation.draftBaseUs * TICKS_PER_US;
    this.perToken = speculation.draftPerTokenUs * TICKS_PER_US;
    this.perContext = speculation.draftPerContextTokenNs * TICKS_PER_NS;
  }

  /** Ticks of `depth` draft passes over `sequences` sequences with `context` KV tokens between them. */
  ticks(depth: number, sequences: number, context: number): number {
    return wholeTicks(depth * (this.base + this.perToken * sequences + this.perContext * context));
  }
}
