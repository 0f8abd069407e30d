import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ChartPoint, lineChartSvg } from './line-chart.ts';

const points = [
  { x: 1000, y: -5 },
  { x: 2000, y: 20 },
  { x: 4000, y: 45 },
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

function chart(title: string, points: readonly ChartPoint[]): string {
  return lineChartSvg({ title, points, xLabel: 'steps', yLabel: 'return' });
}

describe('lineChartSvg', () => {
  it('draws every update in proportion, and a smoothed line', () => {
    const [raw, smooth] = lines(chart('run', points));
    const [a, b, c] = raw!;
    assert.ok(Math.abs((b![0] - a![0]) * 2 - (c![0] - b![0])) < 0.3);
    assert.ok(Math.abs(b![1] - (a![1] + c![1]) / 2) < 0.3);
    assert.ok(c![1] < a![1], 'more return is further up');
    assert.deepEqual(smooth![0], a);
    assert.ok(smooth![2][1] > c![1] && smooth![2][1] < a![1]);
  });

  it('labels the axes with round numbers inside the data', () => {
    const svg = chart('run', points);
    const labels = [...svg.matchAll(/text-anchor="(?:end|middle)" fill="#444">([-\d.,]+)</g)].map(
      (match) => match[1],
    );
    assert.deepEqual(labels, ['0', '10', '20', '30', '40', '0', '1,000', '2,000', '3,000', '4,000']);
  });

  it('draws a single update, and none', () => {
    for (const points of [[{ x: 10, y: 7.5 }], [{ x: 10, y: 0 }], []]) {
      assert.doesNotMatch(chart('run', points), /NaN|Infinity|undefined/);
    }
  });

  it('escapes its title', () => {
    assert.match(chart('a < b & c', points), />a &lt; b &amp; c</);
  });
});
