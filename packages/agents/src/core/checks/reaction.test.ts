import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { figureReacts, inertKnobs, knobSwing } from './reaction.ts';

const swingOf = (low: number, high: number) =>
  knobSwing('knob', ['queue'], [{ queue: high }, { queue: low }]);

describe('knobSwing', () => {
  it('is the share by which a figure falls, whichever end is the higher', () => {
    assert.equal(swingOf(80, 100).of.queue, 0.2);
    assert.equal(swingOf(100, 80).of.queue, 0.2);
  });

  it('is 1 at most, for a figure that vanishes too', () => {
    assert.equal(swingOf(0, 8.772).of.queue, 1);
    assert.equal(swingOf(1e-7, 8.772).of.queue.toFixed(6), '1.000000');
    assert.equal(swingOf(0, 0).of.queue, 0);
  });
});

describe('a figure', () => {
  const told = { id: 'queue_reacts', title: 'the queue reacts', remedy: 'more arrivals' };

  it('reacts when a tenth of it comes and goes', () => {
    const { outcome, figures } = figureReacts([swingOf(95, 100), swingOf(0, 3)], 'queue', told);
    assert.deepEqual([outcome, figures], ['pass', { swing: 1, by: 'knob' }]);
    assert.equal(figureReacts([swingOf(95, 100)], 'queue', told).outcome, 'fail');
  });

  it('that moves by less than a hundredth is not moved', () => {
    assert.deepEqual(inertKnobs([swingOf(99.5, 100)]), ['knob']);
    assert.deepEqual(inertKnobs([swingOf(95, 100)]), []);
  });
});
