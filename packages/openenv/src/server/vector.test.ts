import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { type LooseJson, openRawSocket, type RawSocket, startServer } from '../fixtures/start-server.ts';
import { defineEnvironment } from '../protocol/definition.ts';
import { nextTurn } from '../sessions/turns.ts';

/** An environment whose actions and observations are numbers all through. */
const numbersEnvironment = defineEnvironment({
  id: 'numbers',
  version: '1',
  name: 'Numbers',
  description: 'Says what it hears.',
  action: z
    .strictObject({
      level: z.int().min(0).max(9),
      share: z.number().min(0).max(1),
      on: z.boolean(),
      tier: z.enum(['low', 'high']),
      pair: z.array(z.number()).length(2),
    })
    .meta({ title: 'NumbersAction' }),
  observation: z.object({
    seed: z.int(),
    phase: z.string(),
    heard: z.object({ level: z.int(), share: z.number(), on: z.boolean(), tier: z.enum(['low', 'high']) }),
    pair: z.array(z.number()).length(2),
  }),
  state: z.object({}),
  create() {
    let seed = 0;
    const nothing = { level: 0, share: 0, on: false, tier: 'low' as const };
    return {
      reset(options) {
        seed = options.seed ?? 0;
        return {
          observation: { seed, phase: 'start', heard: nothing, pair: [0, 0] },
          reward: null,
          done: false,
        };
      },
      step({ pair, ...heard }) {
        return {
          observation: { seed, phase: 'on', heard, pair },
          reward: heard.level,
          done: heard.level === 9,
        };
      },
      state: () => ({}),
    };
  },
});

/** Sends a binary frame and reads the binary reply. */
function askFloats({ socket }: RawSocket, floats: number[]): Promise<Float32Array> {
  const reply = new Promise<Float32Array>((resolve) => {
    socket.once('message', (data: Buffer) => resolve(new Float32Array(new Uint8Array(data).buffer)));
  });
  socket.send(new Float32Array(floats));
  return reply;
}

test('one message steps every environment, each as it would step alone', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const vector = await openRawSocket(url);
  const alone = await openRawSocket(url);
  const reset = await vector.ask({
    type: 'vector_reset',
    data: { count: 3, seed: 4, options: { target: 9 } },
  });
  assert.equal(reset.type, 'vector');
  assert.deepEqual(
    reset.data.observations.map((observation: LooseJson) => observation.total),
    [4, 5, 6],
  );
  assert.deepEqual(reset.data.dones, [false, false, false]);
  const actions = [{ amount: 1 }, { amount: 2 }, { amount: 3, metadata: {} }];
  const stepped = await vector.ask({ type: 'vector_step', data: { actions } });
  for (const [index, action] of actions.entries()) {
    await alone.ask({ type: 'reset', data: { seed: 4 + index, target: 9 } });
    const { data } = await alone.ask({ type: 'step', data: action });
    assert.deepEqual(stepped.data.observations[index], data.observation);
    assert.equal(stepped.data.rewards[index], data.reward);
    assert.equal(stepped.data.dones[index], data.done);
  }
  assert.equal(server.sessions.size, 5, 'every environment takes a slot');
  const ended = new Promise<void>((resolve) => server.sessions.onClose(() => resolve()));
  await vector.close();
  await ended;
  assert.equal(server.sessions.size, 1);
  await alone.close();
});

test('an ended episode is followed by the next on the next step, on a seed that can be foretold', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'vector_reset', data: { count: 2, seed: 1, options: { target: 5 } } });
  const step = async (...amounts: number[]) => {
    const actions = amounts.map((amount) => ({ amount }));
    const { data } = await socket.ask({ type: 'vector_step', data: { actions } });
    const totals = data.observations.map((observation: LooseJson) => observation.total);
    return { totals, rewards: data.rewards, dones: data.dones };
  };
  assert.deepEqual(await step(9, 1), { totals: [10, 3], rewards: [0.9, 0.1], dones: [true, false] });
  assert.deepEqual(await step(9, 1), { totals: [3, 4], rewards: [0, 0.1], dones: [false, false] });
  assert.deepEqual(await step(9, 1), { totals: [12, 5], rewards: [0.9, 0.1], dones: [true, true] });
  assert.deepEqual(await step(0, 0), { totals: [5, 4], rewards: [0, 0], dones: [false, false] });
  assert.deepEqual((await step(9, 0)).dones, [true, false]);
  // The action of an ended episode is not even read.
  const actions = ['no action', { amount: 0 }];
  assert.equal((await socket.ask({ type: 'vector_step', data: { actions } })).type, 'vector');
  await socket.close();
});

test('environments take no slots for a client that leaves while its message is read, nor when one cannot be made', async (t) => {
  let made = 0;
  let closed = 0;
  const failing = {
    ...counterEnvironment,
    create() {
      if (++made % 4 === 0) assert.fail('no more environments');
      return { ...counterEnvironment.create(), close: () => void closed++ };
    },
  };
  const { url, server } = await startServer(t, failing);
  const message = JSON.stringify({ type: 'vector_reset', data: { count: 2 } });
  const leaving = await openRawSocket(url);
  const left = new Promise<void>((resolve) => server.sessions.onClose(() => resolve()));
  // Messages of this length are read in a turn of their client, which here comes after a hundred others.
  for (let client = 0; client < 100; client++) void nextTurn(`other ${client}`);
  leaving.send(message + ' '.repeat(40_000));
  leaving.socket.terminate();
  await left;
  await nextTurn('the last');
  assert.equal(server.sessions.size, 0);
  const socket = await openRawSocket(url);
  const refusal = await socket.ask({ type: 'vector_reset', data: { count: 3 } });
  assert.equal(refusal.data.code, 'FACTORY_ERROR');
  assert.equal(server.sessions.size, 1);
  assert.equal(made - closed, 2, 'those that live: of the socket, and the one that failed');
  await socket.close();
});

test('rows of float32 carry numbers, booleans, enumerations, nested fields and fixed lists, and no text', async (t) => {
  const { url } = await startServer(t, numbersEnvironment);
  const socket = await openRawSocket(url);
  const { data } = await socket.ask({ type: 'vector_reset', data: { count: 2, seed: 7, format: 'float32' } });
  assert.deepEqual(data.layout, {
    action: ['level', 'share', 'on', 'tier', 'pair.0', 'pair.1'],
    observation: ['seed', 'heard.level', 'heard.share', 'heard.on', 'heard.tier', 'pair.0', 'pair.1'],
  });
  const reply = await askFloats(socket, [3, 0.5, 1, 1, -1, 2, 9, 0.25, 0, 0, 5, 6]);
  assert.deepEqual(
    [...reply],
    [...[3, 9], ...[0, 1], ...[7, 3, 0.5, 1, 1, -1, 2], ...[8, 9, 0.25, 0, 0, 5, 6]],
  );
  await socket.close();
});

test('a frame of another length, and too many environments, are refused', async (t) => {
  const { url } = await startServer(t, numbersEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'vector_reset', data: { count: 2, seed: 5, format: 'float32' } });
  for (const length of [3, 11, 13, 18]) {
    socket.send(new Uint8Array(new Float32Array(length).buffer));
    assert.equal((await socket.next()).data.code, 'VALIDATION_ERROR');
  }
  const { data } = await socket.ask({ type: 'vector_reset', data: { count: 1e9 } });
  assert.equal(data.code, 'VALIDATION_ERROR');
  await socket.close();
});

test('a mistake in one action is told with its index, and no environment steps', async (t) => {
  const { url } = await startServer(t, numbersEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'vector_reset', data: { count: 2, seed: 0, format: 'float32' } });
  const good = [1, 0, 0, 0, 0, 0];
  for (const [column, value] of [
    [0, 1.5],
    [0, Number.NaN],
    [1, 2],
    [2, 0.5],
    [3, 2],
    [5, Number.POSITIVE_INFINITY],
  ] as const) {
    const bad = good.with(column, value);
    socket.send(new Uint8Array(new Float32Array([...good, ...bad]).buffer));
    const { data } = await socket.next();
    assert.equal(data.code, 'VALIDATION_ERROR');
    assert.deepEqual(data.errors[0].loc.slice(0, 2), ['actions', 1], `${column} ${value}`);
  }
  const reply = await askFloats(socket, [...good, ...good]);
  assert.deepEqual([...reply.subarray(0, 4)], [1, 1, 0, 0]);
  await socket.close();
});

test('what does not fit is refused with a typed error, and the socket goes on', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 4 });
  const socket = await openRawSocket(url);
  const code = async (message: unknown) => (await socket.ask(message)).data.code;
  const reset = (data: object) => ({ type: 'vector_reset', data });
  const step = (data: object) => ({ type: 'vector_step', data });
  assert.equal(await code(step({ actions: [] })), 'VALIDATION_ERROR', 'before a reset');
  assert.equal(await code(new Uint8Array(4)), 'VALIDATION_ERROR', 'binary before a reset');
  for (const count of [0, -1, 1.5, 65_537, 'x', null]) {
    assert.equal(await code(reset({ count })), 'VALIDATION_ERROR', String(count));
  }
  assert.equal(await code(reset({ count: 4 })), 'CAPACITY_REACHED');
  assert.equal(await code(reset({ count: 1, options: { target: 0 } })), 'VALIDATION_ERROR');
  const text = await socket.ask(reset({ count: 1, format: 'float32' }));
  assert.match(text.data.message, /The field 'note' cannot be a float32; use the format 'json'/);
  assert.equal((await socket.ask(reset({ count: 2, seed: 0 }))).type, 'vector');
  assert.equal(await code(step({ actions: [{ amount: 1 }] })), 'VALIDATION_ERROR');
  assert.equal(await code(step({ actions: Array(3).fill({ amount: 1 }) })), 'VALIDATION_ERROR', 'too many');
  assert.equal(await code(step({ actions: [{ amount: 1 }, 3] })), 'VALIDATION_ERROR');
  assert.equal(await code(step({ actions: [{ amount: 1 }, { amount: 1 }], x: 1 })), 'VALIDATION_ERROR');
  assert.equal(await code(new Uint8Array(8)), 'VALIDATION_ERROR', 'binary in JSON format');
  const boom = { amount: 1, note: 'boom' };
  assert.equal(await code(step({ actions: [{ amount: 1 }, boom] })), 'EXECUTION_ERROR');
  assert.equal(
    await code(step({ actions: [{ amount: 1 }, { amount: 1 }] })),
    'VALIDATION_ERROR',
    'abandoned',
  );
  assert.equal((await socket.ask(reset({ count: 3 }))).type, 'vector', 'the slots are free again');
  await socket.close();
});

test('a reset that fails while the others wait for their turn is answered, and does not end the process', async (t) => {
  const { url } = await startServer(t, {
    ...counterEnvironment,
    create: () => ({
      ...counterEnvironment.create(),
      async reset() {
        const until = performance.now() + 10;
        while (performance.now() < until);
        throw new Error('no episode');
      },
    }),
  });
  const socket = await openRawSocket(url, '/ws');
  const { type, data } = await socket.ask({ type: 'vector_reset', data: { count: 3 } });
  assert.deepEqual([type, data.message], ['error', 'no episode']);
});
