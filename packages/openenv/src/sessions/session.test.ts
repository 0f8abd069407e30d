import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from './session.ts';
import { type DurationMeter, nextTurn, readClientJson } from './turns.ts';

/** An environment whose steps end when they are told to, or when it is closed. */
function slowEnvironment() {
  const told: string[] = [];
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  const result = { observation: {}, reward: 0, done: false };
  const environment = {
    reset: () => result,
    step: () =>
      over.then(() => {
        told.push('stepped');
        return result;
      }),
    state: () => ({}),
    close() {
      told.push('closed');
      finish();
    },
  };
  return { environment, told, finish };
}

test('a session closes its environment once the step under way is done', async () => {
  const { environment, told, finish } = slowEnvironment();
  const session = new Session(environment);
  await session.reset({});
  const step = session.step({});
  const closed = session.close();
  finish();
  await Promise.all([step, closed]);
  assert.deepEqual(told, ['stepped', 'closed']);
});

test('a session closes its environment though a step does not come to an end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { environment, told } = slowEnvironment();
  const session = new Session(environment);
  await session.reset({});
  const step = session.step({});
  const closed = session.close();
  t.mock.timers.tick(2000);
  await Promise.all([step, closed]);
  assert.deepEqual(told, ['closed', 'stepped']);
});

const at = (total: number) => ({ observation: { total }, reward: 1, done: false });

/** Counts its steps. */
function counting() {
  let total = 0;
  return {
    reset() {
      total = 0;
      return at(total);
    },
    step: () => at(++total),
    state: () => ({ total, step_count: 99 }),
  };
}

test('a session forgets the actions of the episode before', async () => {
  const session = new Session(counting());
  session.reset({ episode_id: 'one', seed: 1 });
  session.step('a');
  session.step('b');
  assert.deepEqual(session.record, { reset: { episode_id: 'one', seed: 1 }, actions: ['a', 'b'] });
  assert.deepEqual(session.state(), { episode_id: 'one', step_count: 2, total: 2 });
  session.reset({ seed: 2 });
  assert.deepEqual(session.record, { reset: { seed: 2 }, actions: [] });
  assert.equal(session.stepCount, 0);
  assert.notEqual((await session.state()).episode_id, 'one');
});

test('a session whose action could not be noted plays no more', async () => {
  const lost = new Error('the disk is full');
  const noted: number[] = [];
  const journal = {
    reset: async () => {},
    async step(index: number) {
      if (index === 1) throw lost;
      noted.push(index);
    },
    isOwned: async () => true,
  };
  const session = new Session(counting(), { journal });
  await session.reset({ seed: 1 });
  await session.step('a');
  assert.equal(await session.isOwned(), true);
  await assert.rejects(async () => session.step('b'), lost);
  for (const use of [() => session.step('c'), () => session.reset({}), () => session.state()]) {
    await assert.rejects(async () => use(), lost);
  }
  assert.deepEqual([noted, session.failure, await session.isOwned()], [[0], lost, false]);
});

/** A pace at which each computation is long. */
const LONG = { isLong: true, time: (compute: () => unknown) => compute() } as DurationMeter;

test('clients take turns, however many computations of one wait', async () => {
  const served: string[] = [];
  const wait = (client: string) => nextTurn(client).then(() => void served.push(client));
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(wait));
  assert.equal(served.join(''), 'abcabaa');
});

test('the resets of a client wait behind its own, not behind all those of another', async () => {
  const served: string[] = [];
  const opened = (client: string) => {
    const result = { observation: {}, reward: null, done: false };
    const reset = () => {
      served.push(client);
      return result;
    };
    return new Session({ reset, step: () => result, state: () => ({}) }, { client, resetDuration: LONG });
  };
  await Promise.all(['a', 'a', 'a', 'b'].map((client) => opened(client).reset({})));
  assert.equal(served.join(''), 'abaa');
});

test('a long text is read in a turn of its client, a short one at once', async () => {
  const served: string[] = [];
  const long = `"${'x'.repeat(40_000)}"`;
  const read = async (text: string, client: string) => {
    const reading = await readClientJson(text, client);
    served.push(`${client} ${reading.ok}`);
  };
  assert.ok(!(readClientJson('{}', 'a') instanceof Promise));
  await Promise.all([read(long, 'a'), read(long, 'a'), read(`${long}}`, 'b')]);
  assert.deepEqual(served, ['a true', 'b false', 'a true']);
});
