import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anchorsOf, gainFigures } from './gain.ts';

const episode = (total: number, standard = 10, clairvoyant = 20, estimated = false) => ({
  return: total,
  anchors: { default: standard, clairvoyant, estimated },
});

describe('gainFigures', () => {
  it('is 0 at the default and 1 at the clairvoyant', () => {
    const figures = (total: number) => gainFigures([[episode(total), episode(total)]])!;
    assert.deepEqual(figures(10), {
      gain: { mean: 0, ci95: [0, 0] },
      worst10: 0,
      belowDefault: 0,
      estimated: false,
    });
    assert.equal(figures(20).gain.mean, 1);
  });

  it('floors nothing: one disaster outweighs good episodes', () => {
    const good = Array.from({ length: 19 }, () => episode(19));
    const { gain, worst10, belowDefault } = gainFigures([[...good, episode(-190)]])!;
    assert.ok(gain.mean < 0);
    assert.ok(gain.ci95[0] < gain.mean && gain.mean < gain.ci95[1]);
    assert.equal(worst10, (-20 + 0.9) / 2);
    assert.equal(belowDefault, 1 / 20);
  });

  it('weighs episodes by their returns, so that traffic with a small gap counts no more', () => {
    const { gain } = gainFigures([[episode(10.09, 10, 10.1), episode(10, 10, 20)]])!;
    assert.ok(Math.abs(gain.mean - 0.09 / 10.1) < 1e-9);
  });

  it('counts tasks alike, whatever their returns are', () => {
    const { gain } = gainFigures([[episode(20)], [episode(1000, 1000, 2000)]])!;
    assert.equal(gain.mean, 0.5);
  });

  it('says when a clairvoyant is estimated, and gives nothing where nothing can be gained', () => {
    assert.equal(gainFigures([[episode(15), episode(15, 10, 20, true)]])!.estimated, true);
    assert.equal(gainFigures([[episode(15)], [episode(10, 10, 10)]]), null);
  });
});

describe('anchorsOf', () => {
  it('reads the anchors of a grade, where it has them', () => {
    const anchors = { default: 1, constant: null, clairvoyant: 2, bound: 3, estimated: true };
    assert.deepEqual(anchorsOf({ anchors }), { default: 1, clairvoyant: 2, estimated: true });
    assert.equal(anchorsOf({ return: 1 }), null);
    assert.equal(anchorsOf({ anchors: { default: 1 } }), null);
  });
});
