import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/transport.ts';
import type { EpisodeFile } from '../api/wire.ts';
import { createConsoleState } from './console-state.ts';
import { choices, connected, fakeServer, playToEnd, settled, unreachable } from './fake-server.fixture.ts';

describe('an episode', () => {
  it('starts with the easy task and the heuristic, paused at the first observation', async () => {
    const { state } = await connected();
    assert.equal(state.task.value, 'easy');
    assert.equal(state.driver.value, 'heuristic');
    assert.equal(state.frames.value.length, 1);
    assert.equal(state.playing.value, false);
  });

  it('starts with what the address says', async () => {
    const { state, asked } = await connected(
      { task: 'easy', seed: 9, policies: ['default'], options: { shift: 'a' } },
      true,
    );
    assert.equal(asked.at(-1), 'reset {"task_id":"easy","seed":9,"shift":"a"} undefined');
    assert.equal(state.driver.value, 'default');
    assert.equal(state.playing.value, true);
    assert.equal(state.problem.value, undefined);
  });

  it('says what of the address the server does not have, and waits to be started', async () => {
    const wrong = { task: 'nope', policies: ['nobody', 'default'], options: { shift: 'b', nothing: 1 } };
    const { state, asked } = await connected({ ...wrong, faults: ['Not a seed.'] }, true);
    assert.equal(asked.at(-1), 'reset {"task_id":"easy","seed":1} undefined');
    assert.equal(state.driver.value, 'default');
    assert.equal(state.playing.value, false);
    const { message, remedy } = state.problem.value!;
    for (const part of [
      'There is no task “nope”: expected easy, hard.',
      'Not a seed.',
      'There is no policy “nobody”: expected heuristic, default, hand.',
      'Expected shift to be a, got “b”.',
      'There is no option “nothing”: expected shift.',
    ])
      assert.ok(message.includes(part), `${part} in ${message}`);
    assert.equal(remedy, 'Close');
  });

  it('waits for the window under way before it starts another episode in the same session', async () => {
    const { state, asked } = await connected();
    const step = state.step();
    state.chooseSeed(5);
    await step;
    await settled();
    assert.deepEqual(asked.slice(-2), ['heuristic 1', 'reset {"task_id":"easy","seed":5} s1']);
    assert.equal(state.newest.value, 0);
  });

  it('sends one reset of a session after the other, and of those that wait only the newest', async () => {
    const { state, asked, resetsAtOnce } = await connected();
    const before = asked.length;
    state.chooseSeed(5);
    for (let i = 0; i < 20 && asked.length === before; i++) await Promise.resolve();
    state.chooseSeed(6);
    state.chooseSeed(7);
    await settled();
    assert.deepEqual(asked.slice(before), [
      'reset {"task_id":"easy","seed":5} s1',
      'reset {"task_id":"easy","seed":7} s1',
    ]);
    assert.equal(Math.max(...resetsAtOnce), 1);
  });

  it('can connect later when the server is down at first', async () => {
    const { client, failWith } = fakeServer();
    const state = createConsoleState(client);
    failWith(unreachable);
    await state.connect(choices(), false);
    assert.equal(state.problem.value?.remedy, 'Connect again');
    failWith(undefined);
    state.problem.value?.mend();
    await settled();
    assert.equal(state.frames.value.length, 1);
  });
});

describe('an episode from a file', () => {
  const file: EpisodeFile = {
    format: 'openenv-episode/1',
    environment: { id: 'llmserve', version: '1' },
    reset: { task_id: 'easy', seed: 77, shift: 'a' },
    actions: [{ batch_cap: 1 }, { batch_cap: 2 }, { batch_cap: 3 }],
  };

  it('takes the place of what was there, from its first window on, and can be played on', async () => {
    const { state } = await connected();
    await state.openFile(file, false);
    assert.deepEqual(
      [state.task.value, state.seed.value, state.options.value, state.newest.value, state.position.value],
      ['easy', 77, { shift: 'a' }, 3, 0],
    );
    assert.equal(state.opened.value?.verified, true);
    state.seek(Infinity);
    state.chooseDriver('heuristic');
    await state.step();
    assert.equal(state.newest.value, 4);
  });

  it('stops where its recording does, and is wound back to be seen again', async () => {
    const { state, asked } = await connected();
    await state.openFile(file, true);
    await playToEnd(state);
    assert.deepEqual([state.newest.value, state.position.value, state.playing.value], [3, null, false]);
    const played = asked.length;
    await state.step();
    state.togglePlay();
    assert.deepEqual([state.position.value, state.playing.value], [0, true]);
    await playToEnd(state);
    assert.equal(asked.length, played, 'the server is asked for nothing more');
  });

  it('is no longer on the page when another episode starts', async () => {
    const { state } = await connected();
    await state.openFile(file, false);
    state.chooseSeed(5);
    await settled();
    assert.deepEqual(
      [state.driver.value, state.opened.value, state.newest.value],
      ['heuristic', undefined, 0],
    );
  });

  it('that cannot be opened is told', async () => {
    const { state, failWith } = await connected();
    failWith(new ApiError('refused', 409, 'The episode was played on `chess`.'));
    await state.openFile(file, false);
    assert.match(state.problem.value?.message ?? '', /chess/);
  });
});

describe('the zoom of the charts', () => {
  it('halves the windows around the shown one, down to five, and ends with the episode', async () => {
    const { state } = await connected();
    assert.equal(state.charted.value, 30, 'of an episode without a known length');
    for (let i = 0; i < 4; i++) await state.step();
    state.zoom(1 / 2);
    assert.deepEqual(state.zoomed.value, [0, 15]);
    state.zoom(1 / 2);
    state.zoom(1 / 2);
    assert.deepEqual(state.zoomed.value, [2, 7]);
    state.zoom(2);
    assert.deepEqual(state.zoomed.value, [0, 10]);
    state.zoom(4);
    assert.equal(state.zoomed.value, null);
    state.zoom(1 / 2);
    state.chooseSeed(5);
    await settled();
    assert.equal(state.zoomed.value, null);
  });
});
