import { DEFAULT_CONDITIONS, type TableColumn, type TableRows, type ValueColumn } from './table-columns.ts';
import { type AxisPosition, locate, TIER_COUNT, type TraceTable } from './trace-table.ts';

/** A row of a table, by column. */
export type FixtureRow = Record<TableColumn, number>;

/** A small sound table: two values of each key. Latencies and memory grow with what makes them grow. */
export function validRows(): FixtureRow[] {
  const rows: FixtureRow[] = [];
  for (const quant_tier of [0, 1, 2]) {
    for (const spec_length of [0, 8]) {
      for (const kv_budget of [0.1, 1]) {
        for (const prompt_len_bucket of [0, 7]) {
          for (const batch_size of [1, 512]) {
            const prompt = prompt_len_bucket === 0 ? 1 : 20;
            const batch = batch_size === 1 ? 1 : 8;
            const tpot = 10 * batch * (1 + prompt / 20);
            rows.push({
              batch_size,
              kv_budget,
              spec_length,
              quant_tier,
              prompt_len_bucket,
              ttft_p50_ms: 20 * prompt * batch,
              ttft_p99_ms: 40 * prompt * batch,
              tpot_ms: tpot,
              tps: (batch_size * 800) / tpot / (1 + 0.2 * prompt),
              gpu_mem_gb: 16 + 20 * kv_budget + spec_length / 100,
              cost_per_1k: 0.01,
            });
          }
        }
      }
    }
  }
  return rows;
}

/** Rows as a file would hold them. */
export function tableOf(
  rows: readonly FixtureRow[],
  conditions: Partial<TableRows['conditions']> = { specAcceptRates: { 8: 0.3 } },
): TableRows {
  const names = Object.keys(rows[0] ?? validRows()[0]) as TableColumn[];
  return {
    count: rows.length,
    columns: Object.fromEntries(names.map((name) => [name, Float64Array.from(rows, (row) => row[name])])),
    conditions: { ...DEFAULT_CONDITIONS, ...conditions },
  };
}

/** A configuration and the prompts it serves, as a table is asked for it. */
export interface TablePoint {
  readonly batchSize: number;
  readonly kvBudget: number;
  readonly specLength: number;
  /** 0 FP16, 1 INT8, 2 INT4. */
  readonly quantTier: number;
  readonly promptTokens: number;
}

/**
 * A cell of a column between those of the grid: linear in batch, KV, speculation and prompt length, the nearest tier;
 * outside of the grid the value at its edge.
 */
export function interpolate(table: TraceTable, column: ValueColumn, point: TablePoint): number {
  const values = table.columns[column];
  const spec = positionOn(table.specLengths, point.specLength);
  const kv = positionOn(table.kvBudgets, point.kvBudget);
  const prompt = positionOn(table.promptLengths, point.promptTokens);
  const batch = positionOn(table.batchSizes, point.batchSize);
  const tier = Math.min(TIER_COUNT - 1, Math.max(0, Math.round(point.quantTier)));
  let sum = 0;
  for (let corner = 0; corner < 16; corner++) {
    const [s, k, l, b] = [corner & 1, (corner >> 1) & 1, (corner >> 2) & 1, (corner >> 3) & 1];
    const weight = weightOf(spec, s) * weightOf(kv, k) * weightOf(prompt, l) * weightOf(batch, b);
    if (weight === 0) continue;
    sum += weight * values[table.cell(tier, spec.low + s, kv.low + k, prompt.low + l, batch.low + b)];
  }
  return sum;
}

function positionOn(points: Float64Array, value: number): AxisPosition {
  const position = { low: 0, share: 0 };
  locate(points, value, position);
  return position;
}

function weightOf({ share }: AxisPosition, corner: number): number {
  return corner === 1 ? share : 1 - share;
}
