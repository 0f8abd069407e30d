import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstFrame, nextFrame } from '../state/frame.ts';
import { createColumns, type SeriesSpec, tracesOf } from './chart-spec.ts';

function series(field: string, draw: SeriesSpec['draw']): SeriesSpec {
  return {
    label: field,
    tone: 'kv',
    draw,
    format: String,
    value: ({ observation }) => observation[field] as number | null | undefined,
  };
}

function framesOf(...observations: Record<string, number | null>[]) {
  const [first, ...rest] = observations.map((observation) => ({
    observation,
    reward: 0,
    done: false,
    metadata: { window_s: 5 },
    action: {},
  }));
  const frames = [firstFrame(first)];
  for (const step of rest) frames.push(nextFrame(frames.at(-1)!, step));
  return frames;
}

function columnsOf(specs: SeriesSpec[], signed: boolean, frames: ReturnType<typeof framesOf>) {
  const traces = tracesOf(specs, signed, () => frames);
  const columns = createColumns(traces);
  columns.extend();
  return Object.fromEntries(traces.map((trace, i) => [`${trace.series.label} ${i}`, columns.data[i + 1]]));
}

describe('the columns of a chart', () => {
  it('stand at the ends of their windows in simulated time', () => {
    const columns = createColumns([{ at: () => null, frames: () => framesOf({}, {}, {}) }]);
    columns.extend();
    assert.deepEqual(columns.data[0], [0, 5, 10]);
  });

  it('grow with the episode and keep what they have', () => {
    const all = framesOf({ q: 1 }, { q: 2 }, { q: null });
    let frames = all.slice(0, 2);
    const columns = createColumns(tracesOf([series('q', 'line')], false, () => frames));
    columns.extend();
    frames = all;
    columns.extend();
    assert.deepEqual(columns.data, [
      [0, 5, 10],
      [1, 2, null],
    ]);
  });

  it('leave a run that is behind the others empty until it has caught up', () => {
    const ahead = framesOf({ q: 1 }, { q: 2 }, { q: 3 });
    const all = framesOf({ q: 4 }, { q: 5 }, { q: 6 });
    let behind = all.slice(0, 1);
    const [first] = tracesOf([series('q', 'line')], false, () => ahead);
    const [second] = tracesOf([series('q', 'line')], false, () => behind);
    const columns = createColumns([first, second]);
    columns.extend();
    assert.deepEqual(columns.data[2], [4, null, null]);
    behind = all;
    columns.extend();
    assert.deepEqual(columns.data, [
      [0, 5, 10],
      [1, 2, 3],
      [4, 5, 6],
    ]);
  });

  it('stack layers on each other, drawn from the outermost inward and below the lines', () => {
    const drawn = columnsOf(
      [series('a', 'layer'), series('line', 'line'), series('b', 'layer')],
      false,
      framesOf({ a: 1, b: 2, line: 9 }),
    );
    assert.deepEqual(drawn, { 'b 0': [3], 'a 1': [1], 'line 2': [9] });
  });

  it('stack negative layers downward', () => {
    const drawn = columnsOf(
      [series('gain', 'layer'), series('loss', 'layer'), series('cost', 'layer')],
      true,
      framesOf({ gain: 0.5, loss: -0.2, cost: -0.1 }),
    );
    assert.deepEqual(
      Object.values(drawn).map(([value]) => Number(value?.toFixed(9))),
      [0.5, 0.5, 0.5, -0.3, -0.2, 0],
    );
  });
});
