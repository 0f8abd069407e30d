import { ProfileError } from '../schema/read-json.ts';
import { readCsv } from './read-csv.ts';

/** Measured times of one kernel by the number of tokens or sequences it works on, ascending. */
export type KernelTimes = readonly { readonly size: number; readonly us: number }[];

/** Kernel times of one transformer on one GPU. */
export type KernelTables = Readonly<ReturnType<typeof parseKernelTables>>;
/** One measured attention kernel: a chunk of a prompt and decoding sequences together, either of which may be absent. */
export type AttentionTime = KernelTables['attention'][number];

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
 * @throws {ProfileError} with the file and line that is wrong, or the kernel that is missing.
 */
export function parseKernelTables(
  files: Readonly<Record<'dense.csv' | 'per_sequence.csv' | 'attention.csv', string>>,
  source: string,
) {
  const read = (file: keyof typeof files, size: string, needed: readonly string[]) =>
    readTimes(files[file], `${source}/${file}`, size, needed);
  const columns = ['prefill_chunk', 'kv_prefill', 'n_decode', 'kv_decode', 'time_us'] as const;
  return {
    dense: read('dense.csv', 'tokens', [...LAYER_KERNELS, ...MODEL_KERNELS]),
    perSequence: read('per_sequence.csv', 'sequences', SEQUENCE_KERNELS),
    attention: readCsv(files['attention.csv'], `${source}/attention.csv`, columns).map((row) => ({
      /** Prompt tokens computed. */
      prefillChunk: row.number('prefill_chunk'),
      /** Tokens of that prompt that are in the KV cache already. */
      kvPrefill: row.number('kv_prefill'),
      /** Decoding sequences. */
      decodes: row.number('n_decode'),
      /** Context of each of them, tokens. */
      kvDecode: row.number('kv_decode'),
      us: row.number('time_us', { isAboveZero: true }),
    })),
  };
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
  const rows = readCsv(text, source, ['layer', sizeColumn, 'time_us']);
  for (const layer of needed) {
    if (!rows.some((row) => row.text('layer') === layer))
      throw new ProfileError('CALIBRATION_FILE', source, `times of \`${layer}\``, 'none');
  }
  const times = rows.map((row) => ({
    layer: row.text('layer'),
    size: row.number(sizeColumn, { from: 1 }),
    us: row.number('time_us', { isAboveZero: true }),
  }));
  const kernels = Map.groupBy(times, ({ layer }) => layer);
  for (const ofKernel of kernels.values()) ofKernel.sort((a, b) => a.size - b.size);
  return kernels;
}
