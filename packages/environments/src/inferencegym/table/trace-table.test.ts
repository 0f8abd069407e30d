import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import { encodeTable, gridPoints, TableBuilder } from './build-table.ts';
import { requirePlayable } from './inspect-table.ts';
import {
  PROMPT_LENGTHS,
  promptBucket,
  TABLE_COLUMNS,
  TABLE_GRID,
  type TableColumn,
  type TableRows,
  VALUE_COLUMNS,
} from './table-columns.ts';
import { type FixtureRow, interpolate, type TablePoint, tableOf, validRows } from './table-rows.fixture.ts';
import { readTableRows, SHIPPED_TABLE_URL, shippedTable, TraceTable } from './trace-table.ts';

const shipped = await shippedTable();

const gridPoint: fc.Arbitrary<TablePoint> = fc.record({
  batchSize: fc.constantFrom(...TABLE_GRID.batch_size),
  kvBudget: fc.constantFrom(...TABLE_GRID.kv_budget),
  specLength: fc.constantFrom(...TABLE_GRID.spec_length),
  quantTier: fc.constantFrom(...TABLE_GRID.quant_tier),
  promptTokens: fc.constantFrom(...PROMPT_LENGTHS),
});

/** The cell of a point of the grid, looked up by hand. */
function cellOf({ batchSize, kvBudget, specLength, quantTier, promptTokens }: TablePoint): number {
  return shipped.cell(
    quantTier,
    shipped.specLengths.indexOf(specLength),
    shipped.kvBudgets.indexOf(kvBudget),
    shipped.promptLengths.indexOf(promptTokens),
    shipped.batchSizes.indexOf(batchSize),
  );
}

describe('a trace table', () => {
  it('data: has the grid that is documented', () => {
    assert.deepEqual([...shipped.batchSizes], [...TABLE_GRID.batch_size]);
    assert.deepEqual([...shipped.kvBudgets], [...TABLE_GRID.kv_budget]);
    assert.deepEqual([...shipped.specLengths], [...TABLE_GRID.spec_length]);
    assert.deepEqual([...shipped.promptLengths], [...PROMPT_LENGTHS]);
  });

  it('answers the cell itself at a point of the grid', () => {
    fc.assert(
      fc.property(gridPoint, fc.constantFrom(...VALUE_COLUMNS), (point, column) => {
        assert.equal(interpolate(shipped, column, point), shipped.columns[column][cellOf(point)]);
      }),
    );
  });

  it('is linear in batch, KV, speculation and prompt length between them', () => {
    const point = { batchSize: 32, kvBudget: 0.5, specLength: 2, quantTier: 1, promptTokens: 512 };
    for (const further of [
      { batchSize: 64 },
      { kvBudget: 0.75 },
      { specLength: 4 },
      { promptTokens: 1024 },
    ] as Partial<TablePoint>[]) {
      const [name] = Object.keys(further) as (keyof TablePoint)[];
      for (const share of [0.25, 0.5, 0.9]) {
        const between = { ...point, [name]: point[name] + share * (further[name]! - point[name]) };
        const ends = [point, { ...point, ...further }].map((at) => shipped.columns.tps[cellOf(at)]);
        const expected = ends[0] + share * (ends[1] - ends[0]);
        const got = interpolate(shipped, 'tps', between);
        assert.ok(Math.abs(got - expected) < 1e-9 * expected, `${name} ${share}: ${got}, not ${expected}`);
      }
    }
  });

  it('takes the nearest tier, and the edge outside of the grid', () => {
    const point = { batchSize: 32, kvBudget: 0.5, specLength: 0, quantTier: 1, promptTokens: 512 };
    assert.equal(
      interpolate(shipped, 'tps', { ...point, quantTier: 1.4 }),
      interpolate(shipped, 'tps', point),
    );
    assert.equal(
      interpolate(shipped, 'tps', { ...point, promptTokens: 16 }),
      interpolate(shipped, 'tps', { ...point, promptTokens: 64 }),
    );
    assert.equal(
      interpolate(shipped, 'tps', { ...point, batchSize: 10_000 }),
      interpolate(shipped, 'tps', { ...point, batchSize: 512 }),
    );
  });

  it('never leaves the range of the cells around', () => {
    const anywhere = fc.record({
      batchSize: fc.double({ min: 1, max: 512, noNaN: true }),
      kvBudget: fc.double({ min: 0.1, max: 1, noNaN: true }),
      specLength: fc.double({ min: 0, max: 8, noNaN: true }),
      quantTier: fc.constantFrom(0, 1, 2),
      promptTokens: fc.double({ min: 32, max: 9000, noNaN: true }),
    });
    fc.assert(
      fc.property(anywhere, fc.constantFrom(...VALUE_COLUMNS), (point, column) => {
        const value = interpolate(shipped, column, point);
        const column_ = shipped.columns[column];
        const { length } = shipped.columns.tps;
        const tier = column_.subarray((length / 3) * point.quantTier, (length / 3) * (point.quantTier + 1));
        const slack = 1e-9 * value;
        assert.ok(value >= tier.reduce((a, b) => Math.min(a, b)) - slack);
        assert.ok(value <= tier.reduce((a, b) => Math.max(a, b)) + slack);
      }),
    );
  });

  it('derives the tiers that were not measured from FP16, and leaves those that were', () => {
    const derived = new TraceTable(tableOf(validRows().filter(({ quant_tier }) => quant_tier !== 2)));
    const point = { batchSize: 1, kvBudget: 1, specLength: 0, quantTier: 0, promptTokens: 64 };
    const at = (quantTier: number, column: 'tpot_ms' | 'tps') =>
      interpolate(derived, column, { ...point, quantTier });
    assert.equal(at(1, 'tpot_ms'), at(0, 'tpot_ms'));
    assert.ok(Math.abs(at(2, 'tpot_ms') - 0.68 * at(0, 'tpot_ms')) < 1e-12);
    assert.ok(Math.abs(at(2, 'tps') - at(0, 'tps') / 0.68) < 1e-9);
  });

  it('puts prompts into buckets by the edges of InferenceGym', () => {
    assert.deepEqual([1, 64, 65, 128, 129, 4096, 4097, 100_000].map(promptBucket), [0, 0, 1, 1, 2, 6, 7, 7]);
  });
});

/** Code that the sound table is refused with after a change. */
function codeAfter(change: (row: FixtureRow, index: number) => Partial<FixtureRow>): string | undefined {
  return codeOf(tableOf(validRows().map((row, index) => ({ ...row, ...change(row, index) }))));
}

function codeOf(rows: TableRows): string | undefined {
  try {
    requirePlayable(rows);
    return undefined;
  } catch (error) {
    return (error as { readonly code?: string }).code;
  }
}

describe('a trace table that cannot be played', () => {
  it('is not a sound one', () => assert.equal(codeOf(tableOf(validRows())), undefined));

  it('is told which column is missing', () => {
    const { columns, ...rest } = tableOf(validRows());
    const { tps, ...others } = columns;
    assert.throws(() => requirePlayable({ ...rest, columns: others }), {
      code: 'MISSING_COLUMN',
      message: /`tps`/,
    });
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
  ] as [string, (row: FixtureRow, index: number) => Partial<FixtureRow>, string][]) {
    it(`is one with ${what}`, () => assert.equal(codeAfter(change), code));
  }

  for (const column of ['ttft_p50_ms', 'ttft_p99_ms', 'tpot_ms'] as const) {
    it(`is one whose ${column} is in seconds`, async () => {
      const shipped = await readTableRows(readFileSync(SHIPPED_TABLE_URL));
      for (const sound of [tableOf(validRows()), shipped]) {
        assert.equal(codeOf(sound), undefined);
        // Latencies of a slow server may be above the least in ms even in seconds.
        for (const slow of [1, 4]) {
          const inSeconds = sound.columns[column]!.map((value) => (slow * value) / 1000);
          const rows = { ...sound, columns: { ...sound.columns, [column]: inSeconds } };
          assert.throws(() => new TraceTable(rows), {
            code: 'SECONDS_NOT_MS',
            message: new RegExp(`\`${column}\` in ms, .* Multiply it by 1,000`),
          });
        }
      }
    });
  }

  it('is told which configurations were not measured', () => {
    assert.throws(() => new TraceTable(tableOf(validRows().slice(0, -1))), {
      code: 'MISSING_ROW',
      message: /1 of 48 .* batch_size 512, kv_budget 1, spec_length 8, quant_tier 2/,
    });
  });

  it('is not one that lacks a part of the range, or tiers but FP16', () => {
    const without = (column: TableColumn, value: number) =>
      codeOf(tableOf(validRows().filter((row) => row[column] !== value)));
    assert.equal(without('batch_size', 512), undefined);
    assert.equal(without('quant_tier', 2), undefined);
    assert.equal(without('quant_tier', 0), 'MISSING_FP16');
    assert.equal(codeOf(tableOf(validRows(), { specAcceptRates: null })), undefined);
    assert.equal(codeOf(tableOf([])), 'NO_ROWS');
    new TraceTable(tableOf(validRows().filter(({ quant_tier }) => quant_tier === 0)));
  });

  it('refuses a file that is no Parquet', async () => {
    for (const bytes of [new Uint8Array(0), new TextEncoder().encode('a,b\n1,2\n'), new Uint8Array(64)]) {
      await assert.rejects(readTableRows(bytes), { code: 'NOT_PARQUET' });
    }
  });
});

const builder = new TableBuilder(findProfile('h100-80gb-llama-3-8b'));
/** Rows of the shipped table that are measured again: one in so many, a prime, so that every value of every knob is met. */
const EVERY = 89;

describe('a built table', () => {
  it('measures the rows of the table that comes with the package again, to the last digit', async () => {
    const { columns, count, conditions } = await readTableRows(readFileSync(SHIPPED_TABLE_URL));
    const points = gridPoints();
    assert.equal(count, points.length);
    for (let row = 0; row < count; row += EVERY) {
      const measured = builder.measure(points[row]);
      for (const column of TABLE_COLUMNS) {
        assert.equal(
          columns[column]![row],
          measured[column],
          `${column} of row ${row}: the simulator has changed. Run \`servegym profile table build --profile h100-80gb-llama-3-8b --out packages/environments/src/inferencegym/table/h100-80gb-llama-3-8b.parquet\`, \`UPDATE_GOLDEN=1 npx node --test packages/environments/src/inferencegym/gym-grader.test.ts\` and the golden trajectories of inferencegym with UPDATE_GOLDEN=1`,
        );
      }
    }
    const { spec_accept_rates, output_tokens } = builder.metadata();
    assert.deepEqual(conditions.specAcceptRates, JSON.parse(spec_accept_rates!));
    assert.equal(conditions.outputTokens, Number(output_tokens));
  });

  it('writes a file that reads back as it was, the same bytes each time', async () => {
    const points = gridPoints().filter((point) => point.batch_size <= 4 && point.prompt_len_bucket <= 1);
    const rows = points
      .filter(({ quant_tier, spec_length }) => quant_tier === 0 && spec_length === 0)
      .map((point) => builder.measure(point));
    const file = encodeTable(rows, builder.metadata());
    assert.deepEqual(file, encodeTable(rows, builder.metadata()));
    const read = await readTableRows(file);
    for (const column of TABLE_COLUMNS) {
      assert.deepEqual(
        [...read.columns[column]!],
        rows.map((row) => row[column]),
      );
    }
    requirePlayable(read);
  });

  it('measures what physics asks for', () => {
    const base = { batch_size: 32, kv_budget: 1, spec_length: 0, quant_tier: 0, prompt_len_bucket: 3 };
    const plain = builder.measure(base);
    assert.ok(builder.measure({ ...base, batch_size: 128 }).tps > plain.tps);
    assert.ok(builder.measure({ ...base, batch_size: 128 }).tpot_ms > plain.tpot_ms);
    assert.ok(builder.measure({ ...base, prompt_len_bucket: 6 }).tps < plain.tps);
    assert.ok(builder.measure({ ...base, kv_budget: 0.1 }).gpu_mem_gb < plain.gpu_mem_gb);
    assert.ok(
      builder.measure({ ...base, batch_size: 1, spec_length: 4 }).tpot_ms <
        builder.measure({ ...base, batch_size: 1 }).tpot_ms,
    );
    assert.ok(builder.measure({ ...base, batch_size: 512 }).gpu_mem_gb > 40, 'runs out of memory');
    assert.ok(plain.gpu_mem_gb <= 40);
  });

  it('takes other memory, prices and answers, and refuses what does not fit', () => {
    const profile = findProfile('h100-80gb-llama-3-8b');
    const point = { batch_size: 4, kv_budget: 1, spec_length: 0, quant_tier: 0, prompt_len_bucket: 0 };
    const large = new TableBuilder(profile, { memoryGb: 80, usdPerHour: 6 }).measure(point);
    const usual = builder.measure(point);
    assert.ok(large.gpu_mem_gb > 79 && usual.gpu_mem_gb < 40);
    assert.ok(large.cost_per_1k > 3 * usual.cost_per_1k);
    assert.throws(() => new TableBuilder(profile, { memoryGb: 200 }), {
      name: 'EnvironmentError',
      code: 'MEMORY_ABOVE_GPU',
      message: /at most 84.9 GB/,
    });
    assert.throws(() => new TableBuilder(profile, { memoryGb: 17 }), {
      name: 'EnvironmentError',
      code: 'MEMORY_TOO_SMALL',
      message: /memory for one request/,
    });
    const withoutTiers = { ...profile, weights: { FP16: profile.weights.FP16 } };
    assert.throws(() => new TableBuilder(withoutTiers), {
      name: 'EnvironmentError',
      code: 'MISSING_PRECISION',
      message: /lacks INT8, INT4/,
    });
  });

  it('has a row for every combination of the grid', () => {
    const combinations = Object.values(TABLE_GRID).reduce((product, values) => product * values.length, 1);
    assert.equal(new Set(gridPoints().map((point) => JSON.stringify(point))).size, combinations);
  });
});
