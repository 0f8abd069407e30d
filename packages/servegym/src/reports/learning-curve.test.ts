import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { learningCurveSvg } from './learning-curve.ts';

const points = [
  { steps: 1000, value: -5 },
  { steps: 2000, value: 20 },
  { steps: 4000, value: 45 },
];

/** Corners of the drawn lines, in pixels. */
function lines(svg: string): [number, number][][] {
  return [...svg.matchAll(/<path d="(M[^"H]*)" fill="none"/g)].map(([, path]) =>
    path!
      .split(/[ML]/)
      .slice(1)
      .map((corner) => corner.split(' ').map(Number) as [number, number]),
  );
}

describe('learningCurveSvg', () => {
  it('draws every update in proportion, and a smoothed line', () => {
    const [raw, smooth] = lines(learningCurveSvg('run', points));
    const [a, b, c] = raw!;
    assert.ok(Math.abs((b![0] - a![0]) * 2 - (c![0] - b![0])) < 0.3);
    assert.ok(Math.abs(b![1] - (a![1] + c![1]) / 2) < 0.3);
    assert.ok(c![1] < a![1], 'more return is further up');
    assert.deepEqual(smooth![0], a);
    assert.ok(smooth![2]![1] > c![1] && smooth![2]![1] < a![1]);
  });

  it('labels the axes with round numbers inside the data', () => {
    const svg = learningCurveSvg('run', points);
    const labels = [...svg.matchAll(/text-anchor="(?:end|middle)" fill="#444">([-\d.,]+)</g)].map(
      (match) => match[1],
    );
    assert.deepEqual(labels, ['0', '10', '20', '30', '40', '0', '1,000', '2,000', '3,000', '4,000']);
  });

  it('draws a single update, and none', () => {
    for (const points of [[{ steps: 10, value: 7.5 }], [{ steps: 10, value: 0 }], []]) {
      assert.doesNotMatch(learningCurveSvg('run', points), /NaN|Infinity|undefined/);
    }
  });

  it('escapes its title', () => {
    assert.match(learningCurveSvg('a < b & c', points), />a &lt; b &amp; c</);
  });
});
