import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/transport.ts';
import { connected, playToEnd, settled } from './fake-server.fixture.ts';
import { BY_HAND } from './run.ts';

describe('a run', () => {
  it('sends the values of the knobs when they are turned by hand', async () => {
    const { state, actions } = await connected({ policies: [BY_HAND] });
    await state.step();
    state.turn('batch_cap', 8);
    await state.step();
    assert.deepEqual(actions, [{ batch_cap: 32 }, { batch_cap: 8 }]);
  });

  it('hands the knobs over as the policy left them', async () => {
    const { state, actions } = await connected();
    await state.step();
    state.chooseDriver(BY_HAND);
    await state.step();
    assert.deepEqual(actions, [{ batch_cap: 64 }]);
    assert.equal(state.newest.value, 2);
  });
});

describe('playing on from an earlier window', () => {
  it('keeps the windows up to it and drops the rest', async () => {
    const { state, sessions } = await connected();
    for (let i = 0; i < 5; i++) await state.step();
    state.seek(2);
    await state.branch();
    assert.equal(state.newest.value, 2);
    assert.equal(state.position.value, null);
    await state.step();
    assert.equal(state.newest.value, 3);
    assert.equal(sessions.get(state.run.value.sessionId!)?.length, 3);
  });
});

describe('runs side by side', () => {
  it('catch up when they are added, and play in step', async () => {
    const { state } = await connected();
    for (let i = 0; i < 4; i++) await state.step();
    await state.addRun('default');
    assert.deepEqual(
      state.runs.value.map(({ driver, played }) => [driver.value, played.value]),
      [
        ['heuristic', 5],
        ['default', 5],
      ],
    );
    await state.step();
    assert.deepEqual(
      state.runs.value.map(({ played }) => played.value),
      [6, 6],
    );
  });

  it('say which one is catching up, leave it to itself, and remove it when the server refuses', async () => {
    const { state, failWith, asked } = await connected();
    for (let i = 0; i < 6; i++) await state.step();
    const joining: (string | undefined)[] = [];
    const stop = state.joining.subscribe((one) => joining.push(one?.driver.value));
    await state.addRun('default');
    stop();
    assert.deepEqual(joining, [undefined, 'default', undefined]);
    assert.deepEqual(
      asked.filter((request) => request.startsWith('default')),
      ['default 4', 'default 2'],
    );
    failWith(new ApiError('refused', 429, 'Too much is being computed.'));
    await state.addRun('default');
    assert.equal(state.runs.value.length, 2);
    assert.equal(state.joining.value, undefined);
    assert.deepEqual(
      [state.problem.value?.message, state.problem.value?.remedy],
      ['Too much is being computed.', 'Add it again'],
    );
    failWith(undefined);
    state.problem.value?.mend();
    for (let i = 0; i < 1000 && state.runs.value.length < 3; i++) await settled();
    assert.equal(state.runs.value.length, 3);
  });

  it('join one after another when they are chosen at once', async () => {
    const { state } = await connected();
    await Promise.all([state.addRun('default'), state.addRun('random')]);
    assert.deepEqual(
      state.runs.value.map(({ driver }) => driver.value),
      ['heuristic', 'default', 'random'],
    );
  });

  it('are four at most, each in a place of its own', async () => {
    const { state } = await connected({ policies: ['heuristic', 'default'] });
    await state.addRun('default');
    state.removeRun(state.runs.value[1]);
    for (let i = 0; i < 4; i++) await state.addRun('heuristic');
    const places = state.runs.value.map(({ place }) => place);
    assert.deepEqual(places.toSorted(), [0, 1, 2, 3]);
  });

  it('are graded each, and the last one cannot be removed', async () => {
    const { state } = await connected({ policies: ['heuristic', 'default'] }, true);
    await playToEnd(state);
    assert.deepEqual(
      state.runs.value.map(({ grade }) => grade.value?.score),
      [0.4, 0.4],
    );
    state.removeRun(state.runs.value[0]);
    state.removeRun(state.runs.value[0]);
    assert.equal(state.runs.value.length, 1);
    assert.equal(state.run.value, state.runs.value[0]);
  });

  it('by hand go one window at a time, together', async () => {
    const { state } = await connected({ policies: [BY_HAND, 'default'] });
    state.togglePlay();
    state.tick(0);
    state.tick(5000);
    await settled();
    const [hand, policy] = state.runs.value.map(({ played }) => played.value);
    assert.equal(hand, policy);
  });
});
