import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDrawQueue } from './use-plot.ts';

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
