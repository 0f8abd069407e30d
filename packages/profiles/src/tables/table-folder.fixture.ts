import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { operatorRows } from './operator-rows.fixture.ts';
import type { OperatorRow } from './operator-tables.ts';

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
