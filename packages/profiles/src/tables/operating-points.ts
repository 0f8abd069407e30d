import { forEachCsvRecord, TraceError } from '@servegym/simulator';
import { CalibrationError } from '../schema/calibration-error.ts';

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
type Row = Readonly<Record<(typeof COLUMNS)[number], string>>;

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
function isHeldOut({ mode, system, model_path, backend }: Row): boolean {
  return (
    mode !== 'agg' ||
    HELD_OUT_GPUS.test(system) ||
    HELD_OUT_MODELS.test(model_path) ||
    (backend === 'vllm' && HELD_OUT_ON_VLLM.test(model_path))
  );
}

/**
 * Reads the operating points of vLLM and SGLang in `systems/silicon_sample.csv` of NVIDIA's aiconfigurator-core. Rows that
 * are held out are skipped before anything of them but engine, model, GPU and mode is looked at.
 *
 * @param heldOut True: the rows that are held out, but for those with prefill and decode apart, and no others.
 * @throws {CalibrationError} with the line that is wrong.
 */
export function parseOperatingPoints(text: string, source: string, heldOut = false): OperatingPoint[] {
  const points: OperatingPoint[] = [];
  let order: number[] | undefined;
  const wrong = (line: number, expected: string, got: string) =>
    new CalibrationError('CALIBRATION_FILE', `${source}:${line}: expected ${expected}, got "${got}"`);
  try {
    forEachCsvRecord(text, source, 1, (fields, line) => {
      if (order === undefined) {
        order = COLUMNS.map((name) => fields.indexOf(name));
        if (order.includes(-1)) throw wrong(line, `the columns ${COLUMNS.join(', ')}`, fields.join(','));
        return;
      }
      if (order.some((index) => fields[index] === undefined))
        throw wrong(line, 'as many fields as the header has', `${fields.length} fields`);
      const row = Object.fromEntries(COLUMNS.map((name, i) => [name, fields[order![i]]])) as Row;
      const { backend } = row;
      if (isHeldOut(row) !== heldOut || row.mode !== 'agg') return;
      if (backend !== 'vllm' && backend !== 'sglang') return;
      const number = (name: keyof Row) => {
        const value = row[name] === '' ? Number.NaN : Number(row[name]);
        if (value > 0 && value < Number.POSITIVE_INFINITY) return value;
        throw wrong(line, `a number above 0 as ${name}`, row[name]);
      };
      points.push({
        id: row.id,
        source: OTHERS.test(row.silicon_data_source) ? 'others' : 'InferenceX',
        engine: backend,
        version: row.backend_version,
        model: row.model_path,
        system: row.system,
        precision: row.precision,
        concurrency:
          Number(/silicon_concurrency=(\d+)/.exec(row.silicon_data_source)?.[1] ?? 0) ||
          number('batch_size') * (Number(row.attention_dp_size) || 1),
        inputTokens: number('isl'),
        outputTokens: number('osl'),
        ...parallelOf(row, number),
        requestsEach: ONE_BATCH.test(row.silicon_data_source) ? 1 : REQUESTS_EACH,
        repeatsPrompts: backend === 'vllm' && OTHERS.test(row.silicon_data_source),
        ttftMs: number('silicon_ttft_ms'),
        tpotMs: number('silicon_tpot_ms'),
      });
    });
  } catch (error) {
    if (error instanceof TraceError) throw new CalibrationError('CALIBRATION_FILE', error.message);
    throw error;
  }
  return points;
}

/**
 * Division over GPUs. The table's columns differ by source: rows of InferenceX with experts divided over GPUs have
 * `tp_size` multiplied with `moe_ep_size`, and those with replicas of the attention have both sizes squared; their ids
 * (`tp4_ep4`) tell what was meant. Other sources leave `attention_dp_size` empty.
 */
function parallelOf(
  row: Row,
  number: (name: keyof Row) => number,
): Pick<OperatingPoint, 'tensor' | 'data' | 'expert'> {
  const [tp, ep] = [number('tp_size'), Number(row.moe_ep_size) || 1];
  const ofExperts = (Number(row.moe_tp_size) || 1) * ep;
  const dp = Number(row.attention_dp_size) || 0;
  if (dp > 1) return { tensor: 1, data: tp, expert: tp };
  if (dp === 0 && ofExperts > tp) return { tensor: tp, data: ofExperts / tp, expert: ep };
  if (dp === 1 && ep > 1) return { tensor: ep, data: 1, expert: ep };
  return { tensor: tp, data: 1, expert: ep };
}
