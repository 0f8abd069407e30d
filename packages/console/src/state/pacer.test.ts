import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createPacer } from './pacer.ts';

/** Plays `seconds` of a 60 Hz display against a server that answers at once. */
function windowsPlayed(seconds: number, windowsPerSecond: number): number {
  const pacer = createPacer();
  let total = 0;
  for (let frame = 0; frame <= seconds * 60; frame++) {
    const windows = pacer.due((frame * 1000) / 60, windowsPerSecond);
    pacer.played(windows);
    total += windows;
  }
  return total;
}

describe('the pacer', () => {
  it('plays the first window at once', () => {
    assert.equal(createPacer().due(123_456, 2), 1);
  });

  for (const speed of [2, 8, 24, 60, 240]) {
    it(`plays ${speed} windows a second`, () => {
      assert.ok(Math.abs(windowsPlayed(10, speed) - 10 * speed) <= Math.max(2, speed / 30));
    });
  }

  it('does not make up for a long stall', () => {
    const pacer = createPacer();
    pacer.due(0, 8);
    pacer.played(1);
    assert.ok(pacer.due(60_000, 8) <= 2);
  });

  it('asks for the windows that came due during a slow answer together', () => {
    const pacer = createPacer();
    pacer.played(pacer.due(0, 60));
    assert.equal(pacer.due(100, 60), 6);
  });

  it('asks no more than thirty times a second', () => {
    const pacer = createPacer();
    let requests = 0;
    for (let frame = 0; frame < 144; frame++) {
      const windows = pacer.due((frame * 1000) / 144, 240);
      if (windows > 0) requests++;
      pacer.played(windows);
    }
    assert.ok(requests <= 31, `${requests} in a second`);
  });

  it('starts anew after a pause', () => {
    const pacer = createPacer();
    pacer.due(0, 8);
    pacer.played(1);
    pacer.restart();
    assert.equal(pacer.due(60_000, 8), 1);
  });
});
