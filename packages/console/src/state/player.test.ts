import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connected, EPISODE, playToEnd, settled } from './fake-server.fixture.ts';

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
