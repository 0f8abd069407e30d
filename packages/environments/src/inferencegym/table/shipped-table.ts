import { readFileSync } from 'node:fs';
import { TraceTable } from './trace-table.ts';

/** Made by `servegym table build --profile h100-80gb-llama-3-8b`. */
export const SHIPPED_TABLE_URL = new URL('./h100-80gb-llama-3-8b.parquet', import.meta.url);

let shipped: Promise<TraceTable> | undefined;

/** The table that comes with the package, read once. */
export function shippedTable(): Promise<TraceTable> {
  shipped ??= TraceTable.read(readFileSync(SHIPPED_TABLE_URL));
  return shipped;
}
