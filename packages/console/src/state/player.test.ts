import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connected, EPISODE, playToEnd, settled } from './fake-server.fixture.ts';
import { createPacer } from './player.ts';

describe('an episode that plays', () => {
  it('plays to the end, stops and shows the score', async () => {
    const { state } = await connected({}, true);
    await playToEnd(state);
    assert.equal(state.frames.value.length, EPISODE + 1);
    assert.equal(state.latest.value?.totalReward, EPISODE * 0.5);
    assert.equal(state.grade.value?.score, 0.4);
  });

  it('plays one window a step, and pauses for it', async () => {
    const { state } = await connected({}, true);
    await state.step();
    assert.equal(state.newest.value, 1);
    assert.equal(state.playing.value, false);
    await state.step();
    assert.equal(state.newest.value, 2);
  });

  it('plays a window that is asked for while another is under way after it', async () => {
    const { state } = await connected();
    await Promise.all([state.step(), state.step()]);
    assert.equal(state.newest.value, 2);
  });

  it('never asks for two windows at once', async () => {
    const { state, asked } = await connected({}, true);
    state.tick(0);
    state.tick(500);
    state.tick(1000);
    assert.equal(asked.filter((request) => request.startsWith('heuristic')).length, 1);
    await settled();
  });
});

describe('winding back', () => {
  it('shows an earlier window, and steps and plays through what was played', async () => {
    const { state, asked } = await connected();
    for (let i = 0; i < 5; i++) await state.step();
    state.seek(1);
    assert.equal(state.shown.value?.index, 1);
    await state.step();
    assert.equal(state.shown.value?.index, 2);
    const before = asked.length;
    state.togglePlay();
    for (let now = 0; state.position.value !== null; now += 200) state.tick(now);
    assert.equal(asked.length, before, 'nothing is asked for what is there');
    assert.equal(state.shown.value?.index, 5);
    assert.equal(state.playing.value, true, 'and it plays on');
  });

  it('ends before the first window and after the newest', async () => {
    const { state } = await connected();
    await state.step();
    state.seek(-3);
    assert.equal(state.position.value, 0);
    state.seek(99);
    assert.equal(state.position.value, null);
  });
});

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
