import { DEFAULT_CONDITIONS, type TableColumn, type TableRows } from './table-columns.ts';

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
