import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstFrame, nextFrame } from '../state/frame.ts';
import { createColumns, type SeriesSpec, tracesOf } from './chart-spec.ts';
import { laneScale, laneValue } from './lanes.ts';
import { createDrawQueue } from './use-plot.ts';

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

const cap = {
  knob: {
    kind: 'range',
    name: 'cap',
    description: '',
    minimum: 1,
    maximum: 512,
    integer: true,
    optional: false,
  },
  doubling: true,
} as const;
const tier = {
  knob: { kind: 'choice', name: 'tier', description: '', values: ['a', 'b', 'c'], optional: false },
  doubling: false,
} as const;
const split = {
  knob: { kind: 'switch', name: 'split', description: '', optional: false },
  doubling: false,
} as const;

describe('a lane of the timeline', () => {
  it('keeps every value of its knob inside its own strip', () => {
    for (const [lane, values] of [
      [cap, [1, 32, 512]],
      [tier, ['a', 'b', 'c']],
      [split, [false, true]],
    ] as const) {
      for (const index of [0, 3, 6]) {
        const [low, high] = laneScale(lane, index, 7);
        for (const value of values) {
          const height = (laneValue(lane, value)! - low) / (high - low);
          assert.ok(
            height > (6 - index) / 7 && height < (7 - index) / 7,
            `${lane.knob.name} ${value} at ${height}`,
          );
        }
      }
    }
  });

  it('shows nothing for a value it does not know', () => {
    assert.equal(laneValue(tier, 'z'), null);
    assert.equal(laneValue(cap, undefined), null);
    assert.equal(laneValue(split, 1), null);
  });
});

/** A display whose frames come when told. */
function display() {
  let callback: (() => void) | undefined;
  return {
    queue: createDrawQueue((next) => {
      callback = next;
    }),
    /** Shows one frame; false when nobody asked for it. */
    frame(): boolean {
      const now = callback;
      callback = undefined;
      now?.();
      return now !== undefined;
    },
  };
}

describe('the draw queue', () => {
  it('spreads many drawings over frames, each once, in turn', () => {
    const { queue, frame } = display();
    const drawn: number[] = [];
    const draws = Array.from({ length: 7 }, (_, i) => () => drawn.push(i));
    for (const draw of [...draws, ...draws]) queue.add(draw);
    frame();
    assert.deepEqual(drawn, [0, 1, 2, 3]);
    frame();
    assert.deepEqual(drawn, [0, 1, 2, 3, 4, 5, 6]);
    assert.equal(frame(), false);
  });

  it('lets nobody starve when drawings come back in every frame', () => {
    const { queue, frame } = display();
    const times = [0, 0, 0, 0, 0, 0, 0];
    const draws = times.map((_, i) => () => times[i]++);
    for (let i = 0; i < 70; i++) {
      for (const draw of draws) queue.add(draw);
      frame();
    }
    for (const count of times) assert.ok(count >= 35, `${count} of 70`);
  });

  it('draws nothing that was removed', () => {
    const { queue, frame } = display();
    const draw = () => assert.fail('drawn');
    queue.add(draw);
    queue.remove(draw);
    frame();
  });
});
