import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import type { Fields, PlayedStep } from '../api/wire.ts';
import { BY_HAND, createConsoleState } from './console-state.ts';

const EPISODE = 10;

/** A server with two tasks and one policy, whose episodes last ten windows; it notes what it is asked. */
function fakeServer(): {
  client: Client;
  asked: string[];
  actions: Fields[];
  failWith: (error: ApiError | undefined) => void;
} {
  const asked: string[] = [];
  const actions: Fields[] = [];
  let windows = 0;
  let failure: ApiError | undefined;
  const play = (action: Fields): PlayedStep => ({
    action,
    observation: { step_index: ++windows },
    reward: 0.5,
    done: windows >= EPISODE,
    metadata: {},
  });
  const answer = async <T>(request: string, value: () => T): Promise<T> => {
    asked.push(request);
    await Promise.resolve();
    if (failure) throw failure;
    return value();
  };
  const task = (id: string) =>
    ({ id, name: id, difficulty: 'easy', description: '', default_action: { batch_cap: 32 } }) as const;
  return {
    asked,
    actions,
    failWith(error) {
      failure = error;
    },
    client: {
      metadata: () => answer('metadata', () => ({ name: 'llmserve', description: '', version: '1' })),
      schema: () =>
        answer('schema', () => ({
          action: { properties: { batch_cap: { type: 'integer', minimum: 1, maximum: 512 } } },
          observation: {},
          reset_observation: {},
          state: {},
        })),
      tasks: () => answer('tasks', () => [task('easy'), task('hard')]),
      policies: () => answer('policies', () => [{ name: 'heuristic', title: 'Heuristic', description: '' }]),
      reset: (id, seed, again) =>
        answer(`reset ${id} ${seed} ${again}`, () => {
          windows = 0;
          return { sessionId: 's1', observation: {}, reward: null, done: false, metadata: {} };
        }),
      step: (_, action) =>
        answer('step', () => {
          actions.push(action);
          return play(action);
        }),
      policySteps: (name, _, steps) =>
        answer(`${name} ${steps}`, () =>
          Array.from({ length: Math.min(steps, EPISODE - windows) }, () => play({ batch_cap: 64 })),
        ),
      grade: () => answer('grade', () => ({ score: 0.4, breakdown: {}, feedback: 'Well.' })),
    },
  };
}

/** Lets everything that is under way finish. */
const settled = () => new Promise((resume) => setImmediate(resume));

async function connected(choices = {}, autoplay = false) {
  const server = fakeServer();
  const state = createConsoleState(server.client);
  await state.connect(choices, autoplay);
  return { ...server, state };
}

describe('the console', () => {
  it('starts with the hardest task and the heuristic, paused at the first observation', async () => {
    const { state } = await connected();
    assert.equal(state.task.value, 'hard');
    assert.equal(state.driver.value, 'heuristic');
    assert.equal(state.played.value, 1);
    assert.equal(state.playing.value, false);
  });

  it('starts with what the address says, and ignores what the server does not have', async () => {
    const { state, asked } = await connected({ task: 'easy', seed: 9, policy: 'nobody' });
    assert.equal(state.driver.value, 'heuristic');
    assert.equal(asked.at(-1), 'reset easy 9 undefined');
  });

  it('plays to the end, stops and shows the score', async () => {
    const { state } = await connected({}, true);
    for (let now = 0; state.playing.value; now += 1000) {
      state.tick(now);
      await settled();
    }
    await settled();
    assert.equal(state.frames.value.length, EPISODE + 1);
    assert.equal(state.latest.value?.totalReward, EPISODE * 0.5);
    assert.equal(state.grade.value?.score, 0.4);
  });

  it('plays one window a step, and pauses for it', async () => {
    const { state } = await connected({}, true);
    await state.step();
    assert.equal(state.played.value, 2);
    assert.equal(state.playing.value, false);
    await state.step();
    assert.equal(state.played.value, 3);
  });

  it('sends the values of the knobs when they are turned by hand', async () => {
    const { state, actions } = await connected({ policy: BY_HAND });
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
    assert.equal(state.played.value, 3);
  });

  it('waits for the window under way before it starts another episode in the same session', async () => {
    const { state, asked } = await connected();
    const step = state.step();
    state.chooseSeed(5);
    await step;
    await settled();
    assert.deepEqual(asked.slice(-3), ['reset hard 1 undefined', 'heuristic 1', 'reset hard 5 s1']);
    assert.equal(state.played.value, 1);
  });

  it('never asks for two windows at once', async () => {
    const { state, asked } = await connected({}, true);
    state.tick(0);
    state.tick(500);
    state.tick(1000);
    assert.equal(asked.filter((request) => request.startsWith('heuristic')).length, 1);
    await settled();
  });

  it('goes on where it was when the server comes back', async () => {
    const { state, failWith } = await connected({}, true);
    failWith(new ApiError('unreachable', 0, 'The server does not answer.'));
    state.tick(0);
    await settled();
    assert.equal(state.playing.value, false);
    assert.equal(state.problem.value?.remedy, 'Try again');
    failWith(undefined);
    state.problem.value?.mend();
    assert.equal(state.problem.value, undefined);
    assert.equal(state.playing.value, true);
    state.tick(1000);
    await settled();
    assert.ok(state.played.value > 1);
  });

  it('offers a fresh start when the server refuses a step', async () => {
    const { state, failWith, asked } = await connected();
    failWith(new ApiError('refused', 404, 'Unknown session'));
    await state.step();
    assert.equal(state.problem.value?.message, 'Unknown session');
    failWith(undefined);
    state.problem.value?.mend();
    await settled();
    assert.match(asked.at(-1) ?? '', /^reset hard 1/);
    assert.equal(state.problem.value, undefined);
  });

  it('can connect later when the server is down at first', async () => {
    const { client, failWith } = fakeServer();
    const state = createConsoleState(client);
    failWith(new ApiError('unreachable', 0, 'The server does not answer.'));
    await state.connect({}, false);
    assert.equal(state.problem.value?.remedy, 'Connect again');
    failWith(undefined);
    state.problem.value?.mend();
    await settled();
    assert.equal(state.played.value, 1);
  });
});
