/** Columns of a trace table that say which configuration and traffic a row was measured with. */
export const KEY_COLUMNS = [
  'batch_size',
  'kv_budget',
  'spec_length',
  'quant_tier',
  'prompt_len_bucket',
] as const;
export type KeyColumn = (typeof KEY_COLUMNS)[number];

/** Columns of a trace table that say what was measured. */
export const VALUE_COLUMNS = [
  'ttft_p50_ms',
  'ttft_p99_ms',
  'tpot_ms',
  'tps',
  'gpu_mem_gb',
  'cost_per_1k',
] as const;
export type ValueColumn = (typeof VALUE_COLUMNS)[number];

/** All columns of a trace table. */
export const TABLE_COLUMNS = [...KEY_COLUMNS, ...VALUE_COLUMNS] as const;
export type TableColumn = (typeof TABLE_COLUMNS)[number];

/** Prompt length of each `prompt_len_bucket`, tokens. */
export const PROMPT_LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192] as const;

/** The bucket of a prompt: how many of the edges 64, 128, ... 4096 it is longer than. */
export function promptBucket(tokens: number): number {
  let bucket = 0;
  while (bucket < PROMPT_LENGTHS.length - 1 && tokens > PROMPT_LENGTHS[bucket]) bucket++;
  return bucket;
}

/** The grid of the shipped table. */
export const TABLE_GRID = {
  batch_size: [1, 4, 8, 16, 32, 64, 128, 256, 512],
  kv_budget: [0.1, 0.25, 0.5, 0.75, 1],
  spec_length: [0, 1, 2, 4, 8],
  quant_tier: [0, 1, 2],
  prompt_len_bucket: [0, 1, 2, 3, 4, 5, 6, 7],
} as const satisfies Record<KeyColumn, readonly number[]>;

/** The columns of a table as numbers: NaN where a cell is empty or is none. */
export interface TableRows {
  readonly count: number;
  readonly columns: Readonly<Partial<Record<TableColumn, Float64Array>>>;
  readonly conditions: TableConditions;
}

/**
 * Conditions of the measurement, from the key-value metadata of the file. Those of a file that names none: the KV bytes of
 * Llama-3-8B in FP16, the memory of InferenceGym.
 */
export const DEFAULT_CONDITIONS = {
  /** Output tokens of a request of the load, key `output_tokens`. */
  outputTokens: 256,
  /** Bytes of KV for each token of context, key `kv_bytes_per_token`. */
  kvBytesPerToken: 131_072,
  /** More than this the server may not take, GB a GPU, key `memory_limit_gb`: it runs out of memory. */
  memoryLimitGb: 40,
  /** Seconds without service when the server is started anew, key `reload_seconds`. */
  reloadSeconds: 5,
  /**
   * Accepted share of the draft tokens for each `spec_length`, key `spec_accept_rates` (JSON). `null`: taken to be what
   * the task says.
   */
  specAcceptRates: null as Readonly<Record<string, number>> | null,
};
export type TableConditions = Readonly<typeof DEFAULT_CONDITIONS>;
