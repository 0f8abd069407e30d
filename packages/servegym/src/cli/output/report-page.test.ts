import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Chart, chartSvg, type Page } from '@servegym/operators/report';
import { metricChart, metricSections } from '../train/train-one.ts';
import { reportPage } from './report-page.ts';

const METRICS = [
  { steps: 10, mean_return: null, entropy: 3 },
  { steps: 20, mean_return: 5, entropy: 2 },
  { steps: 30, mean_return: 45, entropy: 1 },
  { steps: 50, mean_return: 85, entropy: 1 },
];
type Metrics = Parameters<typeof metricSections>[0];
const training = (title: string, metrics: Metrics): Page => ({
  ...{ title, lead: '', sections: metricSections(metrics) },
});
const learningCurve = (title: string, metrics: Metrics) =>
  chartSvg(metricChart(metrics, 'mean_return'), title);

interface Circle {
  readonly look: string;
  readonly cx: number;
  readonly cy: number;
  readonly r: number;
}

/** The circles of a drawing that stand for a point, in its order. */
function circles(svg: string): Circle[] {
  const found = svg.matchAll(/<circle class="([^"]+)" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"><title>/g);
  return [...found].map(([, look, cx, cy, r]) => ({ look, cx: Number(cx), cy: Number(cy), r: Number(r) }));
}

/** Corners of the drawn lines, in pixels. */
function lines(svg: string): [number, number][][] {
  return [...svg.matchAll(/<path class="\w+" d="M([^"H]*)"/g)].map(([, path]) =>
    path.split('L').map((corner) => corner.split(' ').map(Number) as [number, number]),
  );
}

describe('the page of a report', () => {
  it('is one file that loads nothing, with the result in it', () => {
    const page = reportPage(training('PPO on a < b', METRICS));
    assert.match(page, /<title>PPO on a &lt; b<\/title>/);
    assert.doesNotMatch(page, /<script[^>]* src=|<link[^>]* href="(?!data:)|@import|url\((?!data:)/);
    const [, json] = /<script id="report" type="application\/json">(.*?)<\/script>/s.exec(page)!;
    assert.deepEqual(JSON.parse(json), training('PPO on a < b', METRICS));
  });

  it('keeps what is in the result out of the page’s own code', () => {
    const title = '</script><script>alert(1)</script> $& $1';
    const page = reportPage(training(title, []));
    assert.doesNotMatch(page, /<script>alert/);
    const [, json] = /<script id="report" type="application\/json">(.*?)<\/script>/s.exec(page)!;
    assert.equal(JSON.parse(json).title, title);
  });
});

describe('the learning curve', () => {
  it('draws every update in proportion, without those in which no episode ended, and a smoothed line', () => {
    const [raw, smooth] = lines(learningCurve('run', METRICS));
    assert.equal(raw.length, 3);
    const [a, b, c] = raw;
    assert.ok(Math.abs((b[0] - a[0]) * 2 - (c[0] - b[0])) < 0.3);
    assert.ok(Math.abs(b[1] - (a[1] + c[1]) / 2) < 0.3);
    assert.ok(c[1] < a[1], 'more return is further up');
    assert.deepEqual(smooth[0], a);
    assert.ok(smooth[2][1] > c[1] && smooth[2][1] < a[1]);
  });

  it('has its title, and stands alone', () => {
    const svg = learningCurve('PPO on a < b', METRICS);
    assert.match(svg, /^<svg .*PPO on a &lt; b/s);
    assert.doesNotMatch(svg, /var\(|\drem|light-dark/);
  });

  it('has axes without any points', () => {
    assert.doesNotMatch(learningCurve('empty', []), /NaN|Infinity/);
  });
});

describe('the points of a chart', () => {
  const draw = (dots: Chart['dots']) =>
    circles(
      chartSvg(
        {
          label: 'front',
          x: { title: 'TTFT', unit: 'latency', logarithmic: true },
          y: { title: 'requests/s', unit: 'amount' },
          dots,
        },
        'front',
      ),
    );

  it('stand where their numbers are, on a logarithmic axis too, with their size and look, in their order', () => {
    const [low, middle, high] = draw([
      { x: 10, y: 5, radius: 4, look: 'faint', hollow: true, title: 'a' },
      { x: 100, y: 10, radius: 5, look: 'first', title: 'b' },
      { x: 1000, y: 20, radius: 6, look: 'first', title: 'c' },
    ]);
    // Between two powers of ten lies their geometric mean.
    assert.ok(Math.abs(middle.cx - (low.cx + high.cx) / 2) < 0.2);
    assert.ok(low.cx < high.cx && low.cy > middle.cy && middle.cy > high.cy && low.r < high.r);
    assert.deepEqual([low.look, middle.look], ['faint hollow', 'first']);
  });
});
