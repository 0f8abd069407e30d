import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { OperatorRow, OperatorRows } from './operator-tables.ts';

/** Figures that the rows below follow, all linear, so that sums can be told by hand. */
export const KERNELS = {
  /** Time of a matrix multiplication, us: of each weight, whatever the tokens. */
  perWeightUs: 1e-6,
  /** Of the attention of any number of sequences, us. */
  decodeLaunchUs: 10,
  perContextTokenUs: 0.002,
  prefillLaunchUs: 12,
  perPairUs: 1e-4,
  /** Of the experts of a layer, us: of each token. */
  perExpertTokenUs: 2,
  allReduceUs: 5,
  /** Of a gated delta rule, us: of each decoding sequence, and of each token of a prompt. */
  perLinearSequenceUs: 3,
  perLinearTokenUs: 0.5,
  /** Of latent attention over chosen tokens: behind its launch, us of each token of a prompt. */
  perSparseTokenUs: 0.25,
};

const LATENT = { gemm_type: 'bfloat16', kv_cache_dtype: 'bfloat16', num_heads: 8n };

/** Kernel tables of a made-up GPU in the form of the published ones. */
export function operatorRows(): OperatorRows {
  const sizes = [1, 16, 256, 4096];
  const shapes = [64, 512, 4096, 32_768];
  const gemm: OperatorRow[] = [];
  for (const precision of ['bfloat16', 'fp8']) {
    for (const n of shapes) {
      for (const k of shapes) {
        for (const m of sizes) {
          const us = (precision === 'fp8' ? 0.5 : 1) * KERNELS.perWeightUs * n * k;
          gemm.push({ gemm_dtype: precision, m: BigInt(m), n: BigInt(n), k: BigInt(k), latency: us / 1e3 });
        }
      }
    }
  }
  const heads = { num_heads: 8n, num_key_value_heads: 8n, head_dim: 128n, window_size: 0n };
  const attention = { ...heads, kv_cache_dtype: 'bfloat16', kernel_source: 'one' };
  return {
    gemm,
    context_attention: [1, 128, 1024, 8192].map((isl) => ({
      ...attention,
      batch_size: 1n,
      isl: BigInt(isl),
      latency: (KERNELS.prefillLaunchUs + (isl < 128 ? 0 : (KERNELS.perPairUs * isl ** 2) / 2)) / 1e3,
    })),
    generation_attention: [1, 64].flatMap((batch) =>
      [1, 1024, 8192, 65_536, 131_072, 262_144].map((context) => ({
        ...attention,
        batch_size: BigInt(batch),
        step: BigInt(context - 1),
        latency:
          (KERNELS.decodeLaunchUs + KERNELS.perContextTokenUs * (context === 1 ? 0 : context * batch)) / 1e3,
      })),
    ),
    custom_allreduce: [
      { kernel_source: 'graph', num_gpus: 2n, message_size: 1n, latency: KERNELS.allReduceUs / 1e3 },
      { kernel_source: 'graph', num_gpus: 2n, message_size: 2n ** 40n, latency: KERNELS.allReduceUs / 1e3 },
      { kernel_source: 'eager', num_gpus: 2n, message_size: 1n, latency: 1 },
    ],
    gdn: ['conv', 'rule'].flatMap((kernel_source) =>
      [1, 1024].flatMap((size) => [
        {
          ...{ kernel_source, phase: 'generation', batch_size: BigInt(size), seq_len: 1n },
          ...{ d_model: 1024n, num_k_heads: 4n, num_v_heads: 8n },
          latency: (KERNELS.perLinearSequenceUs * size) / 2e3,
        },
        {
          ...{ kernel_source, phase: 'context', batch_size: 1n, seq_len: BigInt(size) },
          ...{ d_model: 1024n, num_k_heads: 4n, num_v_heads: 8n },
          latency: (KERNELS.perLinearTokenUs * size) / 2e3,
        },
      ]),
    ),
    dsa_context_module: ['dsa_context_module', 'dsa_context_module_skip_indexer'].flatMap((op_name) =>
      [1, 4096].map((isl) => ({
        ...{ op_name, ...LATENT, tp_size: 1n, batch_size: 1n, isl: BigInt(isl), step: 0n },
        latency:
          (KERNELS.prefillLaunchUs +
            (op_name.endsWith('module') ? KERNELS.perSparseTokenUs * (isl - 1) : 0)) /
          1e3,
      })),
    ),
    dsa_generation_module: [1, 64].flatMap((batch) =>
      [1, 1024, 8192].map((step) => ({
        ...{ op_name: 'dsa_generation_module', ...LATENT, tp_size: 1n },
        ...{ batch_size: BigInt(batch), step: BigInt(step) },
        latency: KERNELS.decodeLaunchUs / 1e3,
      })),
    ),
    moe: ['balanced', 'power_law_1.2'].flatMap((distribution) =>
      [1, 16_384].map((tokens) => ({
        ...{ moe_dtype: 'bfloat16', kernel_source: 'triton', distribution, num_tokens: BigInt(tokens) },
        ...{
          hidden_size: 1024n,
          inter_size: 512n,
          topk: 2n,
          num_experts: 8n,
          moe_tp_size: 1n,
          moe_ep_size: 1n,
        },
        latency: ((distribution === 'balanced' ? 1 : 3) * KERNELS.perExpertTokenUs * tokens) / 1e3,
      })),
    ),
  };
}

const OPERATORS: Readonly<Record<string, string>> = {
  gemm: 'gemm',
  context_attention: 'attention',
  generation_attention: 'attention',
  custom_allreduce: 'comm',
  moe: 'moe',
  gdn: 'linear_attention',
  dsa_context_module: 'sparse_attention',
  dsa_generation_module: 'sparse_attention',
};

/** Writes made-up kernel tables of a GPU for each engine and version given, as the published package lays them out. */
export function writeTables(
  folder: string,
  gpu: string,
  versions: readonly (readonly [framework: string, version: string])[],
): void {
  for (const [framework, version] of versions) {
    for (const [file, rows] of Object.entries<readonly OperatorRow[]>({ ...operatorRows() })) {
      writeRows(join(folder, 'systems', 'data', gpu, OPERATORS[file], framework, version), file, rows);
    }
  }
}

/** Writes one table into the folder of its version. */
export function writeRows(path: string, file: string, rows: readonly OperatorRow[]): void {
  mkdirSync(path, { recursive: true });
  const columnData = Object.keys(rows[0]).map((name) => ({ name, data: rows.map((row) => row[name]) }));
  writeFileSync(join(path, `${file}_perf.parquet`), new Uint8Array(parquetWriteBuffer({ columnData })));
}
