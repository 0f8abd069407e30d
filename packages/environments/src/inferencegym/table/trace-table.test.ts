import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { PROMPT_LENGTHS, promptBucket, TABLE_GRID, VALUE_COLUMNS } from './table-columns.ts';
import { interpolate, type TablePoint, tableOf, validRows } from './table-rows.fixture.ts';
import { shippedTable, TraceTable } from './trace-table.ts';

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
