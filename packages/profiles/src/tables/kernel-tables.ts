import { forEachCsvRecord, TraceError } from '@servegym/simulator';
import { CalibrationError } from '../schema/calibration-error.ts';

/** Measured times of one kernel by the number of tokens or sequences it works on, ascending. */
export type KernelTimes = readonly { readonly size: number; readonly us: number }[];

/** One measured attention kernel: a chunk of a prompt and decoding sequences together, either of which may be absent. */
export interface AttentionTime {
  /** Prompt tokens computed. */
  readonly prefillChunk: number;
  /** Tokens of that prompt that are in the KV cache already. */
  readonly kvPrefill: number;
  /** Decoding sequences. */
  readonly decodes: number;
  /** Context of each of them, tokens. */
  readonly kvDecode: number;
  readonly us: number;
}

/** Kernel times of one transformer on one GPU. */
export interface KernelTables {
  readonly dense: ReadonlyMap<string, KernelTimes>;
  readonly perSequence: ReadonlyMap<string, KernelTimes>;
  readonly attention: readonly AttentionTime[];
}

/** Kernels of one decoder layer, attention aside. */
export const LAYER_KERNELS = [
  'layernorm',
  'layernorm',
  'qkv_proj',
  'rotary_emb',
  'o_proj',
  'gate_up_proj',
  'act_fn',
  'down_proj',
] as const;
/** Kernels of the whole model, once an iteration. */
export const MODEL_KERNELS = ['embedding', 'final_layernorm'] as const;
/** Kernels by sequence, once an iteration. */
export const SEQUENCE_KERNELS = ['lm_head', 'sampler'] as const;

/**
 * Reads kernel tables: `dense.csv` (layer,tokens,time_us), `per_sequence.csv` (layer,sequences,time_us) and
 * `attention.csv` (prefill_chunk,kv_prefill,n_decode,kv_decode,time_us).
 *
 * @param files Text of each file, by name.
 * @param source Folder, for the messages.
 * @throws {CalibrationError} with the file and line that is wrong, or the kernel that is missing.
 */
export function parseKernelTables(
  files: Readonly<Record<'dense.csv' | 'per_sequence.csv' | 'attention.csv', string>>,
  source: string,
): KernelTables {
  const dense = readTimes(files['dense.csv'], `${source}/dense.csv`, 'tokens', [
    ...LAYER_KERNELS,
    ...MODEL_KERNELS,
  ]);
  const perSequence = readTimes(
    files['per_sequence.csv'],
    `${source}/per_sequence.csv`,
    'sequences',
    SEQUENCE_KERNELS,
  );
  const columns = ['prefill_chunk', 'kv_prefill', 'n_decode', 'kv_decode', 'time_us'];
  const attention: AttentionTime[] = [];
  readTable(files['attention.csv'], `${source}/attention.csv`, columns, (fields, line, number) => {
    const [prefillChunk, kvPrefill, decodes, kvDecode] = [0, 1, 2, 3].map((i) => number(fields[i], line, 0));
    attention.push({
      prefillChunk: prefillChunk!,
      kvPrefill: kvPrefill!,
      decodes: decodes!,
      kvDecode: kvDecode!,
      us: number(fields[4], line, Number.MIN_VALUE),
    });
  });
  return { dense, perSequence, attention };
}

/** Time of a kernel at a size between those measured, linear between them and beyond. */
export function timeAt(times: KernelTimes, size: number): number {
  const after = times.findIndex((point) => point.size >= size);
  if (after === 0 || times.length === 1) return times[0].us;
  const high = times[after === -1 ? times.length - 1 : after];
  const low = times[after === -1 ? times.length - 2 : after - 1];
  return low.us + ((high.us - low.us) * (size - low.size)) / (high.size - low.size);
}

function readTimes(
  text: string,
  source: string,
  sizeColumn: string,
  needed: readonly string[],
): Map<string, KernelTimes> {
  const kernels = new Map<string, { size: number; us: number }[]>();
  readTable(text, source, ['layer', sizeColumn, 'time_us'], ([layer, size, us], line, number) => {
    const times = kernels.get(layer!) ?? [];
    times.push({ size: number(size!, line, 1), us: number(us!, line, Number.MIN_VALUE) });
    kernels.set(layer!, times);
  });
  for (const layer of needed) {
    if (!kernels.has(layer)) {
      throw new CalibrationError('CALIBRATION_FILE', `${source}: expected times of \`${layer}\`, got none`);
    }
  }
  for (const times of kernels.values()) times.sort((a, b) => a.size - b.size);
  return kernels;
}

/** Calls `visit` with the fields of each record in the order of `columns`. */
function readTable(
  text: string,
  source: string,
  columns: readonly string[],
  visit: (
    fields: readonly string[],
    line: number,
    number: (field: string, line: number, least: number) => number,
  ) => void,
): void {
  const wrong = (line: number, expected: string, got: string) =>
    new CalibrationError('CALIBRATION_FILE', `${source}:${line}: expected ${expected}, got "${got}"`);
  const number = (field: string, line: number, least: number) => {
    const value = field.trim() === '' ? Number.NaN : Number(field);
    if (value >= least && value < Number.POSITIVE_INFINITY) return value;
    throw wrong(line, `a number from ${least === Number.MIN_VALUE ? 'above 0' : least}`, field);
  };
  let order: number[] | undefined;
  try {
    forEachCsvRecord(text, source, 1, (fields, line) => {
      if (order === undefined) {
        const header = fields.map((name) => name.trim().toLowerCase());
        order = columns.map((name) => header.indexOf(name));
        if (order.includes(-1)) throw wrong(line, `the columns ${columns.join(', ')}`, fields.join(','));
        return;
      }
      if (order.some((index) => fields[index] === undefined)) {
        throw wrong(line, `${columns.length} fields`, fields.join(','));
      }
      visit(
        order.map((index) => fields[index]),
        line,
        number,
      );
    });
  } catch (error) {
    if (error instanceof TraceError) throw new CalibrationError('CALIBRATION_FILE', error.message);
    throw error;
  }
}
