import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { GymAction } from './schema.ts';
import { acceptanceRate, Service, ServiceTimes } from './service.ts';
import { TABLE_GRID } from './table/table-columns.ts';
import { interpolate } from './table/table-rows.fixture.ts';
import { shippedTable } from './table/trace-table.ts';

const table = await shippedTable();
const times = new ServiceTimes(table);
const { outputTokens } = table.conditions;
/** Serves what the table was measured with. */
const asMeasured = new Service(times, outputTokens, 0.65);

interface Configuration {
  batch: number;
  kv?: number;
  spec?: number;
  tier?: number;
  split?: boolean;
  prompt?: number;
}

function capacity(
  service: Service,
  { batch, kv = 1, spec = 0, tier = 0, split = false, prompt = 512 }: Configuration,
) {
  const action = {
    kv_budget: kv,
    spec_length: spec,
    batch_size: batch,
    prefill_disagg: split,
    quant_tier: tier,
  };
  service.configure(action as GymAction, prompt);
  return service.capacity();
}

describe('the acceptance of draft tokens', () => {
  it('is base x (1 - complexity) / (1 + 0.15 depth), and 0 without speculation', () => {
    assert.equal(acceptanceRate(0.8, 0, 4), 0.8 / 1.6);
    assert.equal(acceptanceRate(0.8, 4096, 2), 0.4 / 1.3);
    assert.equal(acceptanceRate(0.8, 100_000, 4), 0);
    assert.equal(acceptanceRate(0.8, 100, 0), 0);
  });
});

describe('the service that a table describes', () => {
  it('answers as many requests as the table measured, where the pool holds the batch', () => {
    for (const batch of TABLE_GRID.batch_size) {
      for (const tier of TABLE_GRID.quant_tier) {
        const point = { batchSize: batch, kvBudget: 1, specLength: 0, quantTier: tier, promptTokens: 512 };
        const got = capacity(asMeasured, { batch, tier });
        if (asMeasured.sequencesHeld < batch) continue;
        const measured = interpolate(table, 'tps', point) / outputTokens;
        assert.ok(
          Math.abs(got / measured - 1) < 1e-9,
          `batch ${batch}, tier ${tier}: ${got}, not ${measured}`,
        );
      }
    }
  });

  it('answers less when answers or prompts are longer, or memory is scarcer', () => {
    const long = new Service(times, 2 * outputTokens, 0.65);
    const configuration = fc.record({
      batch: fc.integer({ min: 1, max: 512 }),
      kv: fc.double({ min: 0.1, max: 0.9, noNaN: true }),
      tier: fc.constantFrom(0, 1, 2),
      split: fc.boolean(),
      prompt: fc.integer({ min: 64, max: 4096 }),
    });
    fc.assert(
      fc.property(configuration, (at) => {
        const plain = capacity(asMeasured, at);
        assert.ok(plain > 0 && Number.isFinite(plain));
        assert.ok(capacity(long, at) < plain * 1.01, 'longer answers');
        assert.ok(capacity(asMeasured, { ...at, prompt: 2 * at.prompt }) < plain * 1.02, 'longer prompts');
        assert.ok(capacity(asMeasured, { ...at, kv: at.kv + 0.1 }) > plain * 0.97, 'more memory');
      }),
    );
  });

  it('gains from a larger batch until the pool is full', () => {
    const rates = [1, 4, 16, 64, 128].map((batch) => capacity(asMeasured, { batch }));
    for (let i = 1; i < rates.length; i++) assert.ok(rates[i] > rates[i - 1]);
    const full = capacity(asMeasured, { batch: 512, kv: 0.1 });
    assert.ok(asMeasured.sequencesHeld < 30);
    assert.ok(full < rates[3]);
  });

  it('finds the batch for a rate, the smaller the less there is to do', () => {
    const most = capacity(asMeasured, { batch: 128 });
    const batches = [0.1, 0.5, 0.9, 1].map((share) => asMeasured.batchFor(share * most));
    for (let i = 1; i < batches.length; i++) assert.ok(batches[i] > batches[i - 1]);
    assert.ok(Math.abs(batches[3] - 128) < 1e-6);
    asMeasured.runAt(batches[0]);
    const quiet = asMeasured.tpot();
    asMeasured.runAt(batches[3]);
    assert.ok(asMeasured.tpot() > quiet);
  });

  it('loses with speculation where the task accepts less than the table did', () => {
    const sceptic = new Service(times, outputTokens, 0.2);
    const believer = new Service(times, outputTokens, 0.9);
    const at = { batch: 4, spec: 4 };
    assert.ok(capacity(sceptic, at) < capacity(asMeasured, at));
    assert.ok(capacity(believer, at) > capacity(asMeasured, at));
  });

  it('is disturbed by no prefill on GPUs of their own, and pays for two', () => {
    const at = { batch: 64, prompt: 4096 };
    const mixed = capacity(asMeasured, at);
    const mixedCost = asMeasured.centsPerSecond();
    const split = capacity(asMeasured, { ...at, split: true });
    assert.ok(split > mixed * 1.2);
    assert.equal(asMeasured.centsPerSecond(), 2 * mixedCost);
    asMeasured.runAt(64);
    const splitTtft = asMeasured.ttftP50();
    capacity(asMeasured, at);
    asMeasured.runAt(64);
    assert.ok(splitTtft < asMeasured.ttftP50());
  });

  it('prefills long prompts faster in INT8 than in FP16, and slower in INT4', () => {
    const at = { batch: 32, prompt: 4096 };
    const [fp16, int8, int4] = [0, 1, 2].map((tier) => {
      capacity(asMeasured, { ...at, tier, split: true });
      return asMeasured.recomputeSeconds;
    });
    assert.ok(int8 < fp16 && fp16 < int4);
  });
});
