import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { vllmDefaults } from '../tune/candidate.ts';
import type { FrontPoint, LoadCurvePoint, TuneResult } from '../tune/tune-result.ts';
import { frontSvg, loadCurveSvg, PAPER_COLOURS } from './tune-plots.ts';

const profile = findProfile('h100-80gb-llama-3-8b');
const candidate = vllmDefaults(profile);

/** The circles of a drawing that stand for a point, in its order. */
function circles(svg: string): { cx: number; cy: number; r: number; fill: string }[] {
  return [
    ...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)" fill="([^"]+)"[^>]*><title>/g),
  ].map(([, cx, cy, r, fill]) => ({ cx: Number(cx), cy: Number(cy), r: Number(r), fill: fill! }));
}

describe('the plot of the front', () => {
  const point = (ttftP99Ms: number, sustained: number, tpotP99Ms: number, onFront = true): FrontPoint => ({
    ...{ candidate, sustained, ttftP99Ms, tpotP99Ms, quality: 1, usdPerMillionTokens: 1, onFront },
  });
  const draw = (front: FrontPoint[]) => frontSvg({ front, candidates: [], profile } as unknown as TuneResult);

  it('has the TTFT to the right, the sustained load upwards, and larger dots for a larger TPOT', () => {
    const [fast, slow] = circles(draw([point(100, 5, 10), point(1000, 20, 40)]));
    assert.ok(fast!.cx < slow!.cx && fast!.cy > slow!.cy && fast!.r < slow!.r);
    // Between two powers of ten on a logarithmic axis lies their geometric mean.
    const [low, middle, high] = circles(draw([point(10, 5, 10), point(100, 5, 10), point(1000, 5, 10)]));
    assert.ok(Math.abs(middle!.cx - (low!.cx + high!.cx) / 2) < 0.2);
  });

  it('fills the points of the front, and draws them over the others', () => {
    const dots = circles(draw([point(100, 5, 10), point(1000, 4, 10, false)]));
    assert.deepEqual(
      dots.map(({ fill }) => fill),
      ['none', PAPER_COLOURS.first],
    );
  });

  it('leaves out what serves nothing', () => {
    assert.equal(circles(draw([point(100, 5, 10), point(100, 0, 10), point(0, 5, 10)])).length, 1);
  });
});

describe('the plot of the load', () => {
  it('has the load to the right, the share within the limits upwards, and fills where the SLO holds', () => {
    const curve = (rate: number, good: number, sloUse: number): LoadCurvePoint => ({ rate, good, sloUse });
    const curves = { winner: [curve(10, 1, 0.5), curve(20, 0.4, 3)], defaults: [] };
    const [light, heavy] = circles(loadCurveSvg({ curves } as unknown as TuneResult));
    assert.ok(light!.cx < heavy!.cx && light!.cy < heavy!.cy);
    assert.deepEqual([light!.fill, heavy!.fill], [PAPER_COLOURS.first, PAPER_COLOURS.paper]);
  });
});
