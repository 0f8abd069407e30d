import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { IterationTimer } from './iteration-timer.ts';
import { TICKS_PER_NS, TICKS_PER_US } from './ticks.ts';

const law = {
  baseUs: 2000,
  weightReadUs: 5000,
  perTokenUs: 20,
  perDecodeSequenceUs: 50,
  perContextTokenNs: 70,
  perPrefillAttentionNs: 1,
};

describe('the time of an iteration', () => {
  it('hides compute behind the weight reads until compute is the larger', () => {
    const timer = new IterationTimer({ ...law, baseUs: 0, perDecodeSequenceUs: 0 });
    const us = (tokens: number) => timer.fixedTicks(tokens, 0, 0) / TICKS_PER_US;
    assert.ok(Math.abs(us(1) - 5000) < 1);
    assert.ok(Math.abs(us(250) - 5000 * 2 ** 0.25) < 1);
    assert.ok(Math.abs(us(5000) - 100_000) < 100);
  });

  it('hides sequences behind launches that bind, until their work is the larger', () => {
    const timer = new IterationTimer({ ...law, launchBound: true });
    const us = (sequences: number) => timer.fixedTicks(sequences, sequences, 0) / TICKS_PER_US;
    assert.ok(us(10) < 7020, String(us(10)));
    assert.ok(Math.abs(us(100) - 7000 * 2 ** 0.25) < 1);
    assert.ok(Math.abs(us(5000) - 5000 * 70) < 100);
  });

  it('hides compute of a prefill alone behind launches that bind there', () => {
    const plain = { ...law, prefillLaunchUs: 30_000 };
    const timer = new IterationTimer({ ...plain, launchBound: 'prefill' });
    const us = (tokens: number) => timer.fixedTicks(tokens, 0, tokens ** 2 / 2) / TICKS_PER_US - law.baseUs;
    assert.ok(Math.abs(us(10) - 30_000) < 30, String(us(10)));
    const kernels = Math.hypot(5000 ** 2, (20 * 3000) ** 2) ** 0.5 + 3000 ** 2 / 2e3;
    assert.ok(Math.abs(us(3000) - Math.hypot(30_000 ** 2, kernels ** 2) ** 0.5) < 1);
    assert.equal(timer.decodeTicks(64), new IterationTimer(plain).decodeTicks(64));
  });

  it('reads the experts that tokens are routed to, more of them for more tokens', () => {
    const experts = { count: 8, perToken: 2, readUs: 8000 };
    const timer = new IterationTimer({ ...law, perTokenUs: 1e-6, perDecodeSequenceUs: 0, experts });
    const us = (tokens: number) => timer.fixedTicks(tokens, 0, 0) / TICKS_PER_US;
    assert.ok(Math.abs(us(1) - (2000 + 5000 + 2000)) < 1);
    assert.ok(Math.abs(us(2) - (2000 + 5000 + 8000 * (1 - 0.75 ** 2))) < 1);
    assert.ok(Math.abs(us(1000) - (2000 + 5000 + 8000)) < 1);
  });

  it('multiplies reads and compute by a factor of the tokens, linear between its points and constant outside', () => {
    const timer = new IterationTimer({
      ...law,
      tokenFactors: [
        [8, 2],
        [16, 1],
        [32, 4],
      ],
    });
    const plain = new IterationTimer(law);
    const factor = (tokens: number) => {
      const hiding = (each: IterationTimer) => each.fixedTicks(tokens, 0, 0) - 2000 * TICKS_PER_US;
      return hiding(timer) / hiding(plain);
    };
    const factors = { 1: 2, 8: 2, 10: 1.75, 16: 1, 24: 2.5, 32: 4, 5000: 4 };
    for (const [tokens, expected] of Object.entries(factors)) {
      assert.ok(
        Math.abs(factor(Number(tokens)) - expected) < 1e-6,
        `${tokens} tokens: ${factor(Number(tokens))}`,
      );
    }
  });

  it('charges a token of context by a factor of the sequences', () => {
    const timer = new IterationTimer({
      ...law,
      sequenceFactors: [
        [1, 2],
        [3, 1],
      ],
    });
    const ns = (sequences: number) => timer.contextTicks(sequences) / TICKS_PER_NS;
    assert.deepEqual([1, 2, 3, 400].map(ns), [140, 105, 70, 70]);
  });

  it('adds the launches of an iteration that prefills', () => {
    const timer = new IterationTimer({ ...law, prefillLaunchUs: 960 });
    const plain = new IterationTimer(law);
    assert.equal(timer.fixedTicks(40, 30, 5) - plain.fixedTicks(40, 30, 5), 960 * TICKS_PER_US);
    assert.equal(timer.decodeTicks(30), plain.decodeTicks(30));
  });

  it('charges a token of context the same for any number of sequences, unless the law says otherwise', () => {
    const timer = new IterationTimer(law);
    for (const sequences of [1, 16, 17, 500]) {
      assert.equal(timer.contextTicks(sequences), 70 * TICKS_PER_NS);
    }
  });

  it('charges the context of many sequences by the coefficient for many', () => {
    const dearer = new IterationTimer({ ...law, manySequences: { above: 16, perContextTokenNs: 140 } });
    assert.equal(dearer.contextTicks(16), 70 * TICKS_PER_NS);
    assert.equal(dearer.contextTicks(17), 140 * TICKS_PER_NS);
    const cheaper = new IterationTimer({ ...law, manySequences: { above: 16, perContextTokenNs: 56 } });
    assert.equal(cheaper.contextTicks(16), 70 * TICKS_PER_NS);
    assert.equal(cheaper.contextTicks(20), 56 * TICKS_PER_NS);
    assert.equal(cheaper.contextTicks(64), 56 * TICKS_PER_NS);
  });

  it('charges the context beside a prefill by its own coefficient, where the law has one', () => {
    const plain = new IterationTimer(law);
    assert.equal(plain.contextTicks(8, 512), plain.contextTicks(8));
    const beside = new IterationTimer({ ...law, perContextTokenBesidePrefillNs: 200 });
    assert.equal(beside.contextTicks(8), 70 * TICKS_PER_NS);
    assert.equal(beside.contextTicks(8, 512), 200 * TICKS_PER_NS);
  });

  it('never falls when a sequence of the same length joins', () => {
    const many = fc.record({
      above: fc.integer({ min: 1, max: 64 }),
      perContextTokenNs: fc.double({ min: 1, max: 300, noNaN: true }),
    });
    fc.assert(
      fc.property(
        many,
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 8192 }),
        (manySequences, sequences, length) => {
          const timer = new IterationTimer({ ...law, manySequences });
          const ticks = (d: number) => timer.fixedTicks(d, d, 0) + timer.contextTicks(d) * d * length;
          assert.ok(ticks(sequences + 1) >= ticks(sequences));
        },
      ),
    );
  });
});
