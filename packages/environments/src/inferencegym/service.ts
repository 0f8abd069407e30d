import type { GymAction } from './schema.ts';
import { type AxisPosition, locate, TIER_COUNT, type TraceTable } from './table/trace-table.ts';

/** A prefill takes at most this share of the time that a table shows; the rest is decoding. */
const MOST_PREFILL_SHARE = 0.95;

/**
 * Times of requests by a trace table, so that requests with other answers than those it was
 * measured with can be served, and prefill on a GPU of its own.
 *
 * `batch_size` clients that each wait for an answer go round once in `batch * output / tps` seconds. Of these each
 * request's prefill takes `prefillSeconds`, one after another; what is left is decoding, `decodeSeconds` a token.
 */
export class ServiceTimes {
  readonly table: TraceTable;
  /** Seconds of each output token without prefill, for each cell. */
  readonly decodeSeconds: Float64Array;
  /** Seconds of GPU time that a prompt takes, at `tier * prompts + prompt`. */
  readonly prefillSeconds: Float64Array;
  /** US cents a second, for each cell. */
  readonly centsPerSecond: Float64Array;
  /** GB that the KV pool of `kv_budget` 1 takes, at `tier * speculations + speculation`. */
  readonly fullPoolGb: Float64Array;

  constructor(table: TraceTable) {
    this.table = table;
    const { columns, batchSizes, promptLengths, specLengths, kvBudgets, conditions } = table;
    this.decodeSeconds = new Float64Array(columns.tps.length);
    this.centsPerSecond = columns.tps.map((tps, cell) => (columns.cost_per_1k[cell] * tps) / 1000);
    this.prefillSeconds = prefillSeconds(table);
    this.fullPoolGb = new Float64Array(TIER_COUNT * specLengths.length);
    const lastKv = kvBudgets.length - 1;
    for (let tier = 0; tier < TIER_COUNT; tier++) {
      for (let spec = 0; spec < specLengths.length; spec++) {
        const most = columns.gpu_mem_gb[table.cell(tier, spec, lastKv, 0, 0)];
        const least = columns.gpu_mem_gb[table.cell(tier, spec, 0, 0, 0)];
        // A table with one KV budget, or none that takes memory, does not limit the batch.
        const slope = (most - least) / (kvBudgets[lastKv] - kvBudgets[0]);
        this.fullPoolGb[tier * specLengths.length + spec] = slope > 0 ? slope : Number.POSITIVE_INFINITY;
        for (let kv = 0; kv <= lastKv; kv++) {
          for (let prompt = 0; prompt < promptLengths.length; prompt++) {
            const prefill = this.prefillSeconds[tier * promptLengths.length + prompt];
            for (let batch = 0; batch < batchSizes.length; batch++) {
              const cell = table.cell(tier, spec, kv, prompt, batch);
              const round = (batchSizes[batch] * conditions.outputTokens) / columns.tps[cell];
              const prefills = Math.min(batchSizes[batch] * prefill, MOST_PREFILL_SHARE * round);
              this.decodeSeconds[cell] = (round - prefills) / conditions.outputTokens;
            }
          }
        }
      }
    }
  }
}

/**
 * The first token of a lone request takes the prefill of its prompt and a fixed part, which the shortest prompts tell
 * from the prefill by how little it grows between them.
 */
function prefillSeconds(table: TraceTable): Float64Array {
  const { columns, promptLengths, kvBudgets } = table;
  const count = promptLengths.length;
  const seconds = new Float64Array(TIER_COUNT * count);
  for (let tier = 0; tier < TIER_COUNT; tier++) {
    const ttft = (prompt: number) =>
      columns.ttft_p50_ms[table.cell(tier, 0, kvBudgets.length - 1, prompt, 0)] / 1000;
    const perToken = count > 1 ? Math.max(0, (ttft(1) - ttft(0)) / (promptLengths[1] - promptLengths[0])) : 0;
    for (let prompt = 0; prompt < count; prompt++) {
      seconds[tier * count + prompt] = Math.max(0, ttft(prompt) - ttft(0)) + perToken * promptLengths[0];
    }
  }
  return seconds;
}

/** Draft tokens are accepted less the deeper the draft: this much of what is left, for each token. */
const DEPTH_PENALTY = 0.15;
/** Prompt at which the text is as complex as can be, tokens. */
const MOST_COMPLEX_PROMPT = 8192;

/** Accepted share of the draft tokens, 0 to 1; 0 without speculation. `base` belongs to the task. */
export function acceptanceRate(base: number, promptTokens: number, depth: number): number {
  if (depth === 0) return 0;
  const complexity = Math.min(1, promptTokens / MOST_COMPLEX_PROMPT);
  return Math.min(1, Math.max(0, (base * (1 - complexity)) / (1 + DEPTH_PENALTY * depth)));
}

/**
 * Speed of a server in one configuration, by a trace table: interpolated for the prompts at hand, with the answers
 * and the acceptance of the task. `configure` it, then ask. Nothing is allocated.
 */
export class Service {
  readonly times: ServiceTimes;
  readonly outputTokens: number;
  readonly acceptanceBase: number;
  /** Accepted share of the draft tokens. */
  acceptance = 0;
  /** Requests whose KV fits the pool, on average half answered. */
  sequencesHeld = 0;
  /** Prefill of a request with the half of its answer, s: what a preemption costs. */
  recomputeSeconds = 0;
  #batchSize = 1;
  #split = false;
  /** Configuration of the corners in speculation and KV; NaN before the first. */
  #kvBudget = Number.NaN;
  #specLength = Number.NaN;
  #quantTier = Number.NaN;
  /** Tokens of a verify step over those that the table's acceptance gives. */
  #speedUp = 1;
  /** Requests a second at each batch size of the table. */
  readonly #rates: Float64Array;
  readonly #kv: AxisPosition = { low: 0, share: 0 };
  readonly #spec: AxisPosition = { low: 0, share: 0 };
  readonly #prompt: AxisPosition = { low: 0, share: 0 };
  readonly #batch: AxisPosition = { low: 0, share: 0 };
  readonly #tierCorner = new Corners();
  readonly #specCorners = new Corners();
  readonly #kvCorners = new Corners();
  /** Cells at the first batch size that weigh in, for the prompts and for the contexts that they grow to. */
  readonly #promptCorners = new Corners();
  readonly #contextCorners = new Corners();

  constructor(times: ServiceTimes, outputTokens: number, acceptanceBase: number) {
    this.times = times;
    this.outputTokens = outputTokens;
    this.acceptanceBase = acceptanceBase;
    this.#rates = new Float64Array(times.table.batchSizes.length);
  }

  configure(action: GymAction, promptTokens: number): void {
    const {
      kv_budget: kvBudget,
      spec_length: specLength,
      batch_size: batchSize,
      quant_tier: quantTier,
    } = action;
    const split = action.prefill_disagg;
    const { times, outputTokens } = this;
    const spec = this.#spec;
    const prompt = this.#prompt;
    const { table } = times;
    const { conditions, promptLengths, batchSizes } = table;
    this.#batchSize = batchSize;
    this.#split = split;
    this.acceptance = acceptanceRate(this.acceptanceBase, promptTokens, specLength);
    const measured = specLength === 0 ? 0 : (conditions.specAcceptRates?.[specLength] ?? this.acceptance);
    this.#speedUp = (1 + this.acceptance * specLength) / (1 + measured * specLength);
    if (kvBudget !== this.#kvBudget || specLength !== this.#specLength || quantTier !== this.#quantTier) {
      this.#kvBudget = kvBudget;
      this.#specLength = specLength;
      this.#quantTier = quantTier;
      locate(table.kvBudgets, kvBudget, this.#kv);
      locate(table.specLengths, specLength, spec);
      this.#tierCorner.at(table.cell(quantTier, 0, 0, 0, 0));
      this.#specCorners.along(this.#tierCorner, spec, table.cell(0, 1, 0, 0, 0));
      this.#kvCorners.along(this.#specCorners, this.#kv, table.cell(0, 0, 1, 0, 0));
    }

    // Longer answers than the table's make for longer contexts, as longer prompts do.
    const contextPrompt = promptTokens + (outputTokens - conditions.outputTokens) / 2;
    locate(promptLengths, contextPrompt, prompt);
    this.#contextCorners.along(this.#kvCorners, prompt, batchSizes.length);
    locate(promptLengths, promptTokens + outputTokens / 2, prompt);
    this.recomputeSeconds = this.#prefillAt(quantTier);
    locate(promptLengths, promptTokens, prompt);
    this.#promptCorners.along(this.#kvCorners, prompt, batchSizes.length);

    const prefill = this.#prefillAt(quantTier);
    const perOutput = outputTokens / this.#speedUp;
    const rates = this.#rates;
    const contextCorners = this.#contextCorners;
    // No batch beyond the configured one is asked for.
    for (let batch = 0; batch === 0 || (batch < rates.length && batchSizes[batch - 1] < batchSize); batch++) {
      const decoding = contextCorners.sum(times.decodeSeconds, batch) * perOutput;
      rates[batch] = split
        ? Math.min(batchSizes[batch] / decoding, prefill > 0 ? 1 / prefill : Number.POSITIVE_INFINITY)
        : batchSizes[batch] / (batchSizes[batch] * prefill + decoding);
    }
    const poolGb = times.fullPoolGb[quantTier * table.specLengths.length + spec.low] * kvBudget;
    const requestBytes = conditions.kvBytesPerToken * (promptTokens + outputTokens / 2);
    this.sequencesHeld = (poolGb * 1e9) / requestBytes;
  }

  /** Requests a second when there are always enough. A batch that the pool cannot hold does not help. */
  capacity(): number {
    const { sequencesHeld } = this;
    const batchSize = this.#batchSize;
    const rate = this.#rateAt(batchSize);
    return sequencesHeld < batchSize ? Math.min(rate, this.#rateAt(Math.max(1, sequencesHeld))) : rate;
  }

  /** The batch that answers `rate` requests a second; at most what may run and what the pool holds. */
  batchFor(rate: number): number {
    const rates = this.#rates;
    const { batchSizes } = this.times.table;
    const most = Math.max(1, Math.min(this.#batchSize, this.sequencesHeld));
    let batch = most;
    if (rate <= rates[0]) {
      batch = batchSizes[0] * (rate / rates[0]);
    } else {
      for (let at = 1; at < rates.length && batchSizes[at - 1] < most; at++) {
        if (rates[at] < rate) continue;
        const share = (rate - rates[at - 1]) / (rates[at] - rates[at - 1]);
        batch = batchSizes[at - 1] + share * (batchSizes[at] - batchSizes[at - 1]);
        break;
      }
    }
    return Math.min(most, batch);
  }

  /** Chooses the batch that the latencies below are of. */
  runAt(batch: number): void {
    locate(this.times.table.batchSizes, batch, this.#batch);
  }

  /** ms */
  ttftP50(): number {
    return this.#ttft(this.times.table.columns.ttft_p50_ms);
  }

  /** ms */
  ttftP99(): number {
    return this.#ttft(this.times.table.columns.ttft_p99_ms);
  }

  /** ms */
  tpot(): number {
    const milliseconds = this.#split
      ? this.#at(this.#contextCorners, this.times.decodeSeconds) * 1000
      : this.#at(this.#promptCorners, this.times.table.columns.tpot_ms);
    return milliseconds / this.#speedUp;
  }

  /** Memory that the configuration takes, GB a GPU. */
  memoryGb(): number {
    this.runAt(this.#batchSize);
    return this.#at(this.#promptCorners, this.times.table.columns.gpu_mem_gb);
  }

  /** US cents a second for the configuration, whether it serves or not. */
  centsPerSecond(): number {
    this.runAt(this.#batchSize);
    return this.#at(this.#promptCorners, this.times.centsPerSecond) * (this.#split ? 2 : 1);
  }

  /** Seconds of the prefill of a prompt as long as `prompt` says. */
  #prefillAt(quantTier: number): number {
    const { prefillSeconds, table } = this.times;
    const { low, share } = this.#prompt;
    const at = quantTier * table.promptLengths.length + low;
    const seconds = prefillSeconds[at];
    return share === 0 ? seconds : seconds + share * (prefillSeconds[at + 1] - seconds);
  }

  #ttft(column: Float64Array): number {
    // On a GPU of its own a prompt is disturbed by nobody.
    return this.#split ? this.#promptCorners.sum(column, 0) : this.#at(this.#promptCorners, column);
  }

  #at(corners: Corners, column: Float64Array): number {
    const { low, share } = this.#batch;
    const value = corners.sum(column, low);
    return share === 0 ? value : value + share * (corners.sum(column, low + 1) - value);
  }

  #rateAt(batch: number): number {
    const { batchSizes } = this.times.table;
    if (batch <= batchSizes[0]) return this.#rates[0] * (batch / batchSizes[0]);
    this.runAt(batch);
    const { low, share } = this.#batch;
    const rate = this.#rates[low];
    return share === 0 ? rate : rate + share * (this.#rates[low + 1] - rate);
  }
}

/** The cells around a point in some of the axes, at the beginning of the others, and their weights. */
class Corners {
  #count = 1;
  readonly #cells = new Int32Array(8);
  readonly #weights = new Float64Array(8);

  /** The one cell at the beginning of all axes but the tier's. */
  at(cell: number): void {
    this.#count = 1;
    this.#cells[0] = cell;
    this.#weights[0] = 1;
  }

  /** Those around a point in one axis more. @param stride cells from a value of this axis to the next */
  along(others: Corners, { low, share }: AxisPosition, stride: number): void {
    const cells = this.#cells;
    const weights = this.#weights;
    let count = 0;
    for (let other = 0; other < others.#count; other++) {
      const cell = others.#cells[other] + low * stride;
      const weight = others.#weights[other];
      cells[count] = cell;
      weights[count++] = weight * (1 - share);
      if (share > 0) {
        cells[count] = cell + stride;
        weights[count++] = weight * share;
      }
    }
    this.#count = count;
  }

  /** The weighted sum at a batch size of the table. */
  sum(column: Float64Array, batch: number): number {
    const count = this.#count;
    const cells = this.#cells;
    const weights = this.#weights;
    let sum = 0;
    for (let corner = 0; corner < count; corner++) sum += weights[corner] * column[cells[corner] + batch];
    return sum;
  }
}
