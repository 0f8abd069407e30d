import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KnobTally } from './game-checks.ts';
import { figureReacts, inertKnobs, knobSwing } from './simulation-checks.ts';

interface Action {
  readonly size: number;
  readonly mode: boolean;
}

const knobs = [
  {
    knob: 'size',
    bins: [
      { name: 'small', values: [1, 2] },
      { name: 'large', values: [8, 9] },
    ],
  },
  {
    knob: 'mode',
    bins: [
      { name: 'off', values: [false] },
      { name: 'on', values: [true] },
    ],
  },
] as const;
const task = { environment: 'inferencegym', difficulty: 'medium' } as const;

describe('KnobTally', () => {
  it('tells in how many states the best value of each bin wins', () => {
    const tally = new KnobTally<Action>(knobs);
    tally.add((knob, value) => (knob === 'size' ? Number(value) : 0));
    tally.add((knob, value) => (knob === 'size' ? -Math.abs(Number(value) - 2) : value === true ? 1 : 0));
    const { outcome, figures, advice } = tally.result(task, 1);
    assert.deepEqual(
      [outcome, figures.states, figures.live_knobs, figures.dominated, advice],
      ['pass', 2, 1, 'mode', undefined],
    );
    assert.equal(figures.size, 'small 50 %, large 50 %');
    // The first state, in which the mode makes no difference, is left out.
    assert.equal(figures.mode, 'off 0 %, on 100 %');
  });

  it('does not count a knob that does nothing, and says what to do when too few are live', () => {
    const tally = new KnobTally<Action>(knobs);
    tally.add((knob, value) => (knob === 'size' ? Number(value) : 0));
    const { outcome, figures, advice } = tally.result(task, 1);
    assert.deepEqual([outcome, figures.live_knobs, figures.dominated], ['fail', 0, 'size']);
    assert.equal(figures.mode, 'does nothing');
    assert.match(advice!, /the same values are best/);
  });

  it('counts ties for all that are best', () => {
    const depths = [0, 1, 2].map((depth) => ({ name: `${depth}`, values: [depth] }));
    const tally = new KnobTally<{ readonly depth: number }>([{ knob: 'depth', bins: depths }]);
    tally.add((_, depth) => (depth === 0 ? 0 : 1 - 1e-9 * depth));
    assert.equal(tally.result({ ...task, difficulty: 'easy' }, 0).figures.depth, '0 0 %, 1 100 %, 2 100 %');
  });
});

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
  const told = { environment: 'inferencegym', id: 'queue_reacts', remedy: 'more arrivals' } as const;

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
