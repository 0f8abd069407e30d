import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { vllmDefaults } from '../search/candidate.ts';
import { frontChart } from './tune-report.ts';

describe('the chart of the front', () => {
  const profile = findProfile('h100-80gb-llama-3-8b');
  const point = (ttftP99Ms: number, sustainedRps: number, tpotP99Ms: number) => ({
    ...{ settings: vllmDefaults(profile), ttftP99Ms, sustainedRps, tpotP99Ms },
  });
  const dotsOf = (front: object[], others: object[] = []) =>
    frontChart({ profile, candidates: [], front, others } as never).dots!;

  it('has the TTFT to the right, the sustained load upwards, and larger dots for a larger TPOT', () => {
    const [fast, slow] = dotsOf([point(100, 5, 10), point(1000, 20, 40)]);
    assert.deepEqual([fast!.x, fast!.y, slow!.x, slow!.y], [100, 5, 1000, 20]);
    assert.ok(fast!.radius! < slow!.radius!);
  });

  it('fills the points of the front, and draws them over the others', () => {
    const dots = dotsOf([point(100, 5, 10)], [point(1000, 4, 10)]);
    assert.deepEqual(
      dots.map(({ look, hollow }) => [look, hollow]),
      [
        ['faint', true],
        ['first', undefined],
      ],
    );
  });

  it('leaves out what serves nothing', () => {
    assert.equal(dotsOf([point(100, 5, 10), point(100, 0, 10), point(0, 5, 10)]).length, 1);
  });
});
