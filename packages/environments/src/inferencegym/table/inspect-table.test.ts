import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { inspectTable } from './inspect-table.ts';
import type { TableColumn, TableRows } from './table-columns.ts';
import { type FixtureRow, tableOf, validRows } from './table-rows.fixture.ts';
import { readTableRows, SHIPPED_TABLE_URL, TraceTable } from './trace-table.ts';

/** Codes of what is found in the sound table after a change. */
function codesAfter(change: (row: FixtureRow, index: number) => Partial<FixtureRow>): string[] {
  return codesOf(tableOf(validRows().map((row, index) => ({ ...row, ...change(row, index) }))));
}

function codesOf(rows: TableRows): string[] {
  return [...new Set(inspectTable(rows).map(({ code }) => code))];
}

describe('the inspection of a trace table', () => {
  it('finds nothing in a sound table', () => assert.deepEqual(inspectTable(tableOf(validRows())), []));

  it('names a column that is missing', () => {
    const { columns, ...rest } = tableOf(validRows());
    const { tps, ...others } = columns;
    const [finding] = inspectTable({ ...rest, columns: others });
    assert.equal(finding.code, 'MISSING_COLUMN');
    assert.match(finding.message, /`tps`/);
  });

  for (const [what, change, code] of [
    ['texts in the place of numbers', () => ({ tps: Number.NaN }), 'WRONG_TYPE'],
    ['an empty cell', (_, i) => (i === 5 ? { tps: Number.NaN } : {}), 'NOT_A_NUMBER'],
    ['infinity', (_, i) => (i === 5 ? { tpot_ms: Number.POSITIVE_INFINITY } : {}), 'NOT_A_NUMBER'],
    ['a batch of half a request', (_, i) => (i === 5 ? { batch_size: 1.5 } : {}), 'KEY_OUT_OF_RANGE'],
    ['a KV budget in percent', () => ({ kv_budget: 50 }), 'KEY_OUT_OF_RANGE'],
    ['a throughput of nothing', (_, i) => (i === 5 ? { tps: 0 } : {}), 'NOT_POSITIVE'],
    ['a negative latency', (_, i) => (i === 5 ? { ttft_p50_ms: -1 } : {}), 'NOT_POSITIVE'],
    ['memory in bytes', (row) => ({ gpu_mem_gb: row.gpu_mem_gb * 1e9 }), 'ABSURD_VALUE'],
    ['two rows for one configuration', () => ({ kv_budget: 1 }), 'DUPLICATE_ROW'],
    ['latency in microseconds', (row) => ({ tpot_ms: row.tpot_ms * 300 }), 'MICROSECONDS_NOT_MS'],
    ['memory as a share', (row) => ({ gpu_mem_gb: row.gpu_mem_gb / 80 }), 'MEMORY_NOT_GB'],
    ['memory in MB', (row) => ({ gpu_mem_gb: row.gpu_mem_gb * 20 }), 'MEMORY_NOT_GB'],
    ['cost in dollars', (row) => ({ cost_per_1k: row.cost_per_1k / 100 }), 'USD_NOT_CENTS'],
    ['percentiles the wrong way round', (row) => ({ ttft_p99_ms: row.ttft_p50_ms / 2 }), 'P99_BELOW_P50'],
    ['input tokens among the throughput', (row) => ({ tps: row.tps * 20 }), 'TPS_ABOVE_BATCH'],
    ['memory that falls with the budget', (row) => ({ gpu_mem_gb: 40 - row.gpu_mem_gb / 2 }), 'NOT_MONOTONE'],
    ['batches that make tokens quicker', (row) => ({ tpot_ms: 30 - row.batch_size / 25 }), 'NOT_MONOTONE'],
  ] as [string, (row: FixtureRow, index: number) => Partial<FixtureRow>, string][]) {
    it(`sees ${what}`, () => assert.ok(codesAfter(change).includes(code), String(codesAfter(change))));
  }

  for (const column of ['ttft_p50_ms', 'ttft_p99_ms', 'tpot_ms'] as const) {
    it(`lets no table be played whose ${column} is in seconds`, async () => {
      const shipped = await readTableRows(readFileSync(SHIPPED_TABLE_URL));
      for (const sound of [tableOf(validRows()), shipped]) {
        assert.deepEqual(
          inspectTable(sound).filter(({ severity }) => severity === 'error'),
          [],
        );
        // Latencies of a slow server may be above the least in ms even in seconds.
        for (const slow of [1, 4]) {
          const inSeconds = sound.columns[column]!.map((value) => (slow * value) / 1000);
          const rows = { ...sound, columns: { ...sound.columns, [column]: inSeconds } };
          const findings = inspectTable(rows);
          assert.deepEqual(
            findings.map(({ code, severity }) => [code, severity]),
            [['SECONDS_NOT_MS', 'error']],
          );
          assert.match(findings[0].message, new RegExp(`\`${column}\` in ms, .* Multiply it by 1,000`));
          assert.throws(() => new TraceTable(rows), { code: 'SECONDS_NOT_MS' });
        }
      }
    });
  }

  it('lists configurations that were not measured', () => {
    const [finding] = inspectTable(tableOf(validRows().slice(0, -1)));
    assert.equal(finding.code, 'MISSING_ROW');
    assert.match(finding.message, /1 of 48 .* batch_size 512, kv_budget 1, spec_length 8, quant_tier 2/);
  });

  it('tells what part of the range was not measured', () => {
    const without = (column: TableColumn, value: number) =>
      codesOf(tableOf(validRows().filter((row) => row[column] !== value)));
    assert.deepEqual(without('batch_size', 512), ['MISSING_CORNER']);
    assert.deepEqual(without('quant_tier', 2), ['MISSING_TIER']);
    assert.deepEqual(without('quant_tier', 0), ['MISSING_FP16']);
    assert.deepEqual(codesOf(tableOf(validRows(), { specAcceptRates: null })), ['UNKNOWN_ACCEPTANCE']);
    assert.deepEqual(codesOf(tableOf([])), ['NO_ROWS']);
  });

  it('lets no table be played that has an error, and every one that has warnings only', () => {
    const rows = validRows();
    assert.throws(() => new TraceTable(tableOf(rows.slice(1))), { code: 'MISSING_ROW' });
    new TraceTable(tableOf(rows.filter(({ quant_tier }) => quant_tier === 0)));
  });

  it('refuses a file that is no Parquet', async () => {
    for (const bytes of [new Uint8Array(0), new TextEncoder().encode('a,b\n1,2\n'), new Uint8Array(64)]) {
      await assert.rejects(readTableRows(bytes), { code: 'NOT_PARQUET' });
    }
  });

  it('data: finds nothing in the table that comes with the package', async () => {
    assert.deepEqual(inspectTable(await readTableRows(readFileSync(SHIPPED_TABLE_URL))), []);
  });
});
