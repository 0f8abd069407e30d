import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields, PlayedStep } from '../api/wire.ts';
import type { Choices } from './choices.ts';
import { type ConsoleState, createConsoleState } from './console-state.ts';
import { BY_HAND } from './run.ts';

const EPISODE = 10;

/** A server with two tasks and two policies, whose episodes last ten windows; it notes what it is asked. */
function fakeServer() {
  const asked: string[] = [];
  const actions: Fields[] = [];
  const sessions = new Map<string, Fields[]>();
  /** How many resets were under way, after every change. */
  const resetsAtOnce: number[] = [];
  let failure: ApiError | undefined;
  const play = (session: string, action: Fields): PlayedStep => {
    const played = sessions.get(session);
    if (!played) throw new ApiError('refused', 404, 'Unknown session');
    played.push(action);
    const metadata = {};
    return {
      action,
      observation: { index: played.length },
      reward: 0.5,
      done: played.length >= EPISODE,
      metadata,
    };
  };
  const open = (): string => {
    const id = `s${sessions.size + 1}`;
    sessions.set(id, []);
    return id;
  };
  const answer = async <T>(request: string, value: () => T): Promise<T> => {
    asked.push(request);
    await new Promise((resume) => setImmediate(resume));
    if (failure) throw failure;
    return value();
  };
  const start = { observation: { index: 0 }, reward: null, done: false, metadata: {} };
  const task = (id: string) =>
    ({ id, name: id, difficulty: 'easy', description: '', default_action: { batch_cap: 32 } }) as const;
  const policy = (name: string) => ({ name, title: name, description: '' });
  const client: Client = {
    authorize: (token) => asked.push(`authorize ${token}`),
    health: () => answer('health', () => {}),
    metadata: () =>
      answer('metadata', () => ({ name: 'llmserve', description: '', version: '1', readme_content: null })),
    schema: () =>
      answer('schema', () => ({
        action: { properties: { batch_cap: { type: 'integer', minimum: 1, maximum: 512 } } },
        observation: {},
        reset_observation: {},
        state: {},
      })),
    description: () =>
      answer('description', () => ({
        paths: {
          '/episodes': {},
          '/grader': {},
          '/reset': {
            post: {
              requestBody: {
                content: {
                  'application/json': { schema: { properties: { seed: {}, shift: { enum: ['a'] } } } },
                },
              },
            },
          },
        },
      })),
    tasks: () => answer('tasks', () => [task('easy'), task('hard')]),
    policies: () => answer('policies', () => [policy('heuristic'), policy('default')]),
    reset: (options, again) => {
      resetsAtOnce.push((resetsAtOnce.at(-1) ?? 0) + 1);
      return answer(`reset ${JSON.stringify(options)} ${again}`, () => {
        const sessionId = again ?? open();
        sessions.set(sessionId, []);
        return { sessionId, ...start };
      }).finally(() => resetsAtOnce.push(resetsAtOnce.at(-1)! - 1));
    },
    step: (session, action) =>
      answer('step', () => {
        actions.push(action);
        return play(session, action);
      }),
    policySteps: (name, session, steps) =>
      answer(`${name} ${steps}`, () =>
        Array.from({ length: Math.min(steps, EPISODE - (sessions.get(session)?.length ?? 0)) }, () =>
          play(session, { batch_cap: 64 }),
        ),
      ),
    grade: () => answer('grade', () => ({ score: 0.4, breakdown: {}, feedback: 'Well.' })),
    stepCount: (session) => answer('state', () => sessions.get(session)?.length),
    episode: (session) =>
      answer('episode', () => ({ format: '', reset: { seed: 1 }, actions: [...sessions.get(session)!] })),
    openEpisode: (file, from) =>
      answer(`open ${file.actions.length} from ${from}`, () => {
        const sessionId = open();
        const steps = file.actions.map((action) => play(sessionId, action));
        return {
          sessionId,
          verified: true,
          version: '1',
          ...(from === 0 && { start }),
          steps: from === 0 ? steps : steps.slice(from - 1),
        };
      }),
    ask: () => Promise.reject(new Error('not used here')),
    send: () => Promise.reject(new Error('not used here')),
  };
  return {
    client,
    asked,
    actions,
    sessions,
    resetsAtOnce,
    failWith(error: ApiError | undefined) {
      failure = error;
    },
  };
}

/** Lets everything that is under way finish. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resume) => setImmediate(resume));
}

const choices = (given: Partial<Choices> = {}): Choices => ({ policies: [], options: {}, ...given });

/** Waits for nothing but the person. */
const untilWoken = (_: number, woken: Promise<void>) => woken;

async function connected(given: Partial<Choices> = {}, autoplay = false) {
  const server = fakeServer();
  const state = createConsoleState(server.client, untilWoken);
  await state.connect(choices(given), autoplay);
  return { ...server, state };
}

async function playToEnd(state: ConsoleState): Promise<void> {
  for (let now = 0; state.playing.value; now += 1000) {
    state.tick(now);
    await settled();
  }
}

const unreachable = new ApiError('unreachable', 0, 'The server does not answer.');

describe('the console', () => {
  it('starts with the hardest task and the heuristic, paused at the first observation', async () => {
    const { state } = await connected();
    assert.equal(state.task.value, 'hard');
    assert.equal(state.driver.value, 'heuristic');
    assert.equal(state.frames.value.length, 1);
    assert.equal(state.playing.value, false);
  });

  it('starts with what the address says, and ignores what the server does not have', async () => {
    const { state, asked } = await connected({
      task: 'easy',
      seed: 9,
      policies: ['nobody'],
      options: { shift: 'a', nothing: 1 },
    });
    assert.equal(state.driver.value, 'heuristic');
    assert.equal(asked.at(-1), 'reset {"task_id":"easy","seed":9,"shift":"a"} undefined');
  });

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

  it('waits for the window under way before it starts another episode in the same session', async () => {
    const { state, asked } = await connected();
    const step = state.step();
    state.chooseSeed(5);
    await step;
    await settled();
    assert.deepEqual(asked.slice(-2), ['heuristic 1', 'reset {"task_id":"hard","seed":5} s1']);
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
      'reset {"task_id":"hard","seed":5} s1',
      'reset {"task_id":"hard","seed":7} s1',
    ]);
    assert.equal(Math.max(...resetsAtOnce), 1);
  });

  it('never asks for two windows at once', async () => {
    const { state, asked } = await connected({}, true);
    state.tick(0);
    state.tick(500);
    state.tick(1000);
    assert.equal(asked.filter((request) => request.startsWith('heuristic')).length, 1);
    await settled();
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

  it('and playing on from there keeps the windows up to it and drops the rest', async () => {
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
    await state.step();
    assert.equal(state.newest.value, 4);
  });

  it('that cannot be opened is told', async () => {
    const { state, failWith } = await connected();
    failWith(new ApiError('refused', 409, 'The episode was played on `chess`.'));
    await state.openFile(file, false);
    assert.match(state.problem.value?.message ?? '', /chess/);
  });
});
