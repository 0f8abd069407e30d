import { type CsvRow, readCsv } from './read-csv.ts';

/** Mean latencies of a server that has a number of requests in flight. */
export interface OperatingPoint {
  readonly id: string;
  /** InferenceX, whose recipes are public, or another load generator. */
  readonly source: 'InferenceX' | 'others';
  readonly engine: 'vllm' | 'sglang';
  readonly version: string;
  /** Hugging Face id. */
  readonly model: string;
  /** Folder of the GPU's kernel tables, for instance `h200_sxm`. */
  readonly system: string;
  /** As the table has it: `fp8`, `fp4`, `bf16`; empty for 16-bit weights. */
  readonly precision: string;
  readonly concurrency: number;
  /** Nominal lengths, tokens. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly tensor: number;
  /** Replicas of the attention that share the experts. */
  readonly data: number;
  /** GPUs that the experts are divided over; 1: each expert is divided as the other weights are. */
  readonly expert: number;
  /** Requests sent for each of those in flight. */
  readonly requestsEach: number;
  /** Whether the load generator went through a list of 100 prompts again and again, after a warm-up. */
  readonly repeatsPrompts: boolean;
  readonly ttftMs: number;
  readonly tpotMs: number;
}

const COLUMNS = [
  'id',
  'silicon_data_source',
  'backend',
  'backend_version',
  'model_path',
  'system',
  'precision',
  'mode',
  'isl',
  'osl',
  'batch_size',
  'tp_size',
  'attention_dp_size',
  'moe_tp_size',
  'moe_ep_size',
  'silicon_ttft_ms',
  'silicon_tpot_ms',
] as const;
type Column = (typeof COLUMNS)[number];
type Row = CsvRow<Column>;

/** As InferenceX sends, the source of most rows. */
const REQUESTS_EACH = 10;
/**
 * Source of rows that are one batch: their mean TTFT is half the prefill of all requests together, at every length and
 * concurrency from 16 to 128.
 */
const ONE_BATCH = /\/h100_sxm\/sglang\//;
const OTHERS = /gap-analysis\/data\//;
const HELD_OUT_GPUS = /^(b300|gb200|gb300)/;
const HELD_OUT_MODELS = /kimi-k2\.5/i;
const HELD_OUT_ON_VLLM = /qwen3-32b|llama-3\.1-70b/i;

/**
 * Rows that no constant of the simulator was chosen by: Kimi-K2.5, GPUs newer than B200, prefill and decode apart; on
 * vLLM also Qwen3-32B and Llama-3.1-70B.
 */
function isHeldOut(row: Row): boolean {
  const model = row.text('model_path');
  return (
    row.text('mode') !== 'agg' ||
    HELD_OUT_GPUS.test(row.text('system')) ||
    HELD_OUT_MODELS.test(model) ||
    (row.text('backend') === 'vllm' && HELD_OUT_ON_VLLM.test(model))
  );
}

/**
 * Reads the operating points of vLLM and SGLang in `systems/silicon_sample.csv` of NVIDIA's aiconfigurator-core. Rows that
 * are held out are skipped before anything of them but engine, model, GPU and mode is looked at.
 *
 * @param heldOut True: the rows that are held out, but for those with prefill and decode apart, and no others.
 * @throws {ProfileError} with the line that is wrong.
 */
export function parseOperatingPoints(text: string, source: string, heldOut = false): OperatingPoint[] {
  return readCsv(text, source, COLUMNS).flatMap((row) => {
    const engine = row.text('backend');
    if (isHeldOut(row) !== heldOut || row.text('mode') !== 'agg') return [];
    if (engine !== 'vllm' && engine !== 'sglang') return [];
    const number = (name: Column) => row.number(name, { isAboveZero: true });
    const data = row.text('silicon_data_source');
    return {
      id: row.text('id'),
      source: OTHERS.test(data) ? 'others' : 'InferenceX',
      engine,
      version: row.text('backend_version'),
      model: row.text('model_path'),
      system: row.text('system'),
      precision: row.text('precision'),
      concurrency:
        Number(/silicon_concurrency=(\d+)/.exec(data)?.[1] ?? 0) ||
        number('batch_size') * (Number(row.text('attention_dp_size')) || 1),
      inputTokens: number('isl'),
      outputTokens: number('osl'),
      ...parallelOf(row),
      requestsEach: ONE_BATCH.test(data) ? 1 : REQUESTS_EACH,
      repeatsPrompts: engine === 'vllm' && OTHERS.test(data),
      ttftMs: number('silicon_ttft_ms'),
      tpotMs: number('silicon_tpot_ms'),
    };
  });
}

/**
 * Division over GPUs. The table's columns differ by source: rows of InferenceX with experts divided over GPUs have
 * `tp_size` multiplied with `moe_ep_size`, and those with replicas of the attention have both sizes squared; their ids
 * (`tp4_ep4`) tell what was meant. Other sources leave `attention_dp_size` empty.
 */
function parallelOf(row: Row): Pick<OperatingPoint, 'tensor' | 'data' | 'expert'> {
  const or = (name: Column, other: number) => Number(row.text(name)) || other;
  const [tp, ep] = [row.number('tp_size', { isAboveZero: true }), or('moe_ep_size', 1)];
  const ofExperts = or('moe_tp_size', 1) * ep;
  const dp = or('attention_dp_size', 0);
  if (dp > 1) return { tensor: 1, data: tp, expert: tp };
  if (dp === 0 && ofExperts > tp) return { tensor: tp, data: ofExperts / tp, expert: ep };
  if (dp === 1 && ep > 1) return { tensor: ep, data: 1, expert: ep };
  return { tensor: tp, data: 1, expert: ep };
}
