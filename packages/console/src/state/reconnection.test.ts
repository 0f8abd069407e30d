import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/transport.ts';
import { createConsoleState } from './console-state.ts';
import { choices, connected, fakeServer, settled, unreachable } from './fake-server.fixture.ts';
import { retryDelayMs, sleepUntilWoken } from './reconnection.ts';
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

describe('a planner that the server has no time for', () => {
  /** A page that plays, on a server that refuses windows with `refusal` as long as it stands. */
  async function playing(refusal: ApiError) {
    const { client, asked } = fakeServer();
    const server = { refusal: refusal as ApiError | undefined };
    const waits: number[] = [];
    const state = createConsoleState(
      {
        ...client,
        policySteps: (...request) =>
          server.refusal ? Promise.reject(server.refusal) : client.policySteps(...request),
      },
      async (milliseconds) => {
        waits.push(milliseconds);
        if (waits.length === 4) server.refusal = undefined;
      },
    );
    await state.connect(choices(), true);
    return { state, server, waits, asked };
  }

  it('is asked for again, ever less often and not before the server wants it', async () => {
    const busy = new ApiError('refused', 429, 'Too much is being computed.', 'WORK_QUEUE_FULL', 1000);
    const { state, waits } = await playing(busy);
    for (let now = 0; state.newest.value === 0; now += 1000) {
      state.tick(now);
      await settled();
    }
    assert.deepEqual(waits, [1000, 1000, 1600, 3200]);
    assert.equal(state.problem.value, undefined);
    assert.equal(state.playing.value, true);
  });

  it('is not asked again by itself where it was broken off', async () => {
    const broken = new ApiError('refused', 503, 'The planner took longer than 30 s.', 'WORK_TIMEOUT');
    const { state, server, waits, asked } = await playing(broken);
    state.tick(0);
    await settled();
    assert.deepEqual(
      [state.problem.value?.message, state.problem.value?.remedy],
      ['The planner took longer than 30 s.', 'Try again'],
    );
    assert.deepEqual(waits, []);
    const resets = asked.filter((request) => request.startsWith('reset')).length;
    server.refusal = undefined;
    state.problem.value?.mend();
    state.tick(1000);
    await settled();
    assert.ok(state.newest.value > 0);
    assert.equal(
      asked.filter((request) => request.startsWith('reset')).length,
      resets,
      'the episode goes on',
    );
  });
});

it('the pauses between attempts grow, and stay below ten seconds', () => {
  const delays = Array.from({ length: 12 }, (_, attempt) => retryDelayMs(attempt));
  for (let i = 1; i < delays.length; i++) assert.ok(delays[i] >= delays[i - 1]);
  assert.ok(delays[0] < 1000 && delays[11] < 10_000);
});

it('a pause ends when it is woken', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await sleepUntilWoken(1e9, Promise.resolve());
});

describe('the page', () => {
  it('asks for a token where the server wants one, and goes on with it', async () => {
    const { client, failWith, asked } = fakeServer();
    const state = createConsoleState(client);
    failWith(new ApiError('refused', 401, 'Expected a token'));
    await state.connect(choices(), false);
    assert.equal(state.needsToken.value, true);
    assert.equal(state.problem.value, undefined);
    failWith(undefined);
    state.enterToken('open-sesame');
    await settled();
    assert.ok(asked.includes('authorize open-sesame'));
    assert.equal(state.frames.value.length, 1);
  });
});
