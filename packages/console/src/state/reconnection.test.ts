import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/api-error.ts';
import { connected, settled, unreachable } from './fake-server.fixture.ts';
import { BY_HAND } from './run.ts';

describe('when the connection breaks', () => {
  it('the page goes on by itself where it was', async () => {
    const { state, failWith } = await connected({}, true);
    failWith(unreachable);
    state.tick(0);
    await settled();
    assert.equal(state.playing.value, false);
    assert.match(state.problem.value?.message ?? '', /does not answer.*tries again by itself/);
    state.problem.value?.mend();
    await settled();
    assert.ok(state.problem.value, 'still away');
    failWith(undefined);
    state.problem.value?.mend();
    await settled();
    assert.equal(state.problem.value, undefined);
    assert.equal(state.playing.value, true);
    state.tick(10_000);
    await settled();
    assert.ok(state.newest.value > 0);
  });

  it('a window whose answer was lost is fetched, not played twice', async () => {
    const { state, failWith, sessions } = await connected({ policies: [BY_HAND] });
    await state.step();
    failWith(unreachable);
    await state.step();
    // The server had played it, only its answer was lost.
    sessions.get('s1')!.push({ batch_cap: 7 });
    failWith(undefined);
    state.problem.value?.mend();
    await settled();
    assert.equal(state.newest.value, 2);
    assert.deepEqual(state.latest.value?.action, { batch_cap: 7 });
  });

  it('a session that the server has forgotten is rebuilt from what the page has', async () => {
    const { state, sessions } = await connected();
    await state.step();
    await state.step();
    sessions.clear();
    await state.step();
    await settled();
    await state.step();
    assert.equal(state.problem.value, undefined);
    assert.equal(state.newest.value, 3);
    assert.equal(sessions.get(state.run.value.sessionId!)?.length, 3);
  });

  it('an action that the server refuses is told, with a fresh start', async () => {
    const { state, failWith, asked } = await connected();
    failWith(new ApiError('refused', 422, 'batch_cap: too large'));
    await state.step();
    assert.equal(state.problem.value?.message, 'batch_cap: too large');
    failWith(undefined);
    state.problem.value?.mend();
    await settled();
    assert.match(asked.at(-1) ?? '', /^reset/);
    assert.equal(state.problem.value, undefined);
  });
});
