import { TIER_COUNT, type TraceTable } from './table/trace-table.ts';

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
