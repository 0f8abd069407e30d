import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { encodeTable, gridPoints, TableBuilder } from './build-table.ts';
import { inspectTable } from './inspect-table.ts';
import { TABLE_COLUMNS, TABLE_GRID } from './table-columns.ts';
import { readTableRows, SHIPPED_TABLE_URL } from './trace-table.ts';

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
          `${column} of row ${row}: the simulator has changed. Run \`servegym profile table build --profile h100-80gb-llama-3-8b --out packages/environments/src/inferencegym/table/h100-80gb-llama-3-8b.parquet\`, \`servegym table calibrate --out packages/environments/src/inferencegym/shipped-calibration.json\` and the golden trajectories of inferencegym with UPDATE_GOLDEN=1`,
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
    assert.ok(inspectTable(read).every(({ severity }) => severity === 'warning'));
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
