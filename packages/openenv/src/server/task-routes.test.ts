import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket } from '../fixtures/raw-socket.ts';
import { getJson, postJson, startServer } from '../fixtures/start-server.ts';

test('the Task API lists splits and tasks, and a reset plays the task that is asked for', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  assert.deepEqual((await getJson(`${url}/list_environments`)).body, ['counter']);
  assert.deepEqual((await getJson(`${url}/Counter/splits`)).body, [
    { name: 'train', type: 'train' },
    { name: 'exam', type: 'test' },
  ]);
  assert.deepEqual((await postJson(`${url}/counter/num_tasks`, { split: 'train' })).body, { num_tasks: 5 });
  const { body } = await postJson(`${url}/counter/tasks`, { split: 'train' });
  assert.equal(body.env_name, 'counter');
  assert.deepEqual(body.tasks[3], { seed: 3, target: 10 });
  const one = await postJson(`${url}/counter/task`, { split: 'train', index: 3 });
  assert.deepEqual(one.body, { task: body.tasks[3] });

  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { split: 'train', index: 3, episode_id: 'e' } });
  const { data } = await socket.ask({ type: 'state' });
  assert.deepEqual([data.seed, data.target, data.episode_id], [3, 10, 'e']);
  await socket.ask({ type: 'reset', data: { split: 'train', index: 4, seed: 4, target: 10, index_note: 1 } });
  assert.equal(
    (await socket.ask({ type: 'state' })).data.seed,
    4,
    'what says the same twice is no contradiction',
  );
  const { data: error } = await socket.ask({ type: 'reset', data: { split: 'train', index: 3, seed: 8 } });
  assert.match(error.message, /has seed 3, but seed 8 was sent beside it/);
  assert.equal((await socket.ask({ type: 'state' })).data.seed, 4, 'nothing was reset');
  await socket.close();
});

test('a reset whose options contradict each other is refused, and says which', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const refused = async (options: object) => {
    const { status, body } = await postJson(`${url}/reset`, options);
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal(body.code, 'CONFLICTING_OPTIONS');
    return body.detail as string;
  };
  assert.match(await refused({ split: 'train', index: 1, seed: 5 }), /seed 1, but seed 5 .*leave out seed/);
  assert.match(await refused({ split: 'train', index: 0, target: 11 }), /target 10, but target 11/);
  assert.match(await refused({ split: 'exam', task_id: 'short' }), /task_id "long", but task_id "short"/);
  const alone = await postJson(`${url}/reset`, { index: 4 });
  assert.equal(alone.status, 422);
  assert.deepEqual(
    (alone.body.detail as { type: string; loc: unknown }[]).map(({ type, loc }) => [type, loc]),
    [['missing', ['body', 'split']]],
  );
  for (const options of [
    { split: null, index: null, seed: 5 },
    { split: 'train', index: null, seed: null },
    { split: 'train', index: 2, seed: 2.0, target: 10, task_id: 'short' },
    { split: 'exam', seed: 9, task_id: 'long', target: 40 },
  ]) {
    assert.equal((await postJson(`${url}/reset`, options)).status, 200, JSON.stringify(options));
  }
  const malformed = await postJson(`${url}/reset`, { split: 'train', index: 1, seed: 'five' });
  assert.equal(malformed.status, 422);
});

test('ranges are those of Python', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const seeds = async (range: object) => {
    const { body } = await postJson(`${url}/counter/task_range`, { split: 'train', ...range });
    return body.tasks.map((task: { seed: number }) => task.seed);
  };
  assert.deepEqual(await seeds({}), [0, 1, 2, 3, 4]);
  assert.deepEqual(await seeds({ start: 1, stop: 3 }), [1, 2]);
  assert.deepEqual(await seeds({ start: -2, stop: null }), [3, 4]);
  assert.deepEqual(await seeds({ start: 3, stop: 1 }), []);
  assert.deepEqual(await seeds({ start: -99, stop: 99 }), [0, 1, 2, 3, 4]);
});

test('unknown names are 404, indexes outside are 400 and 422, missing splits are 501', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const foreign = await postJson(`${url}/chess/tasks`, { split: 'train' });
  assert.deepEqual([foreign.status, foreign.body.detail], [404, "unknown environment 'chess'"]);
  const unknown = await postJson(`${url}/counter/tasks`, { split: 'nope' });
  assert.deepEqual(
    [unknown.status, unknown.body.detail],
    [404, "unknown split 'nope'; there are train, exam"],
  );
  for (const index of [5, -1]) {
    const outside = await postJson(`${url}/counter/task`, { split: 'train', index });
    assert.deepEqual([outside.status, outside.body.detail], [400, 'Invalid task index']);
  }
  assert.equal((await postJson(`${url}/counter/task`, { split: 'train' })).status, 422);
  const beyond = await postJson(`${url}/reset`, { split: 'train', index: 5 });
  assert.deepEqual([beyond.status, beyond.body.code], [404, 'UNKNOWN_TASK']);
  for (const options of [{ split: 'nope' }, { split: 'train', index: -1 }, { split: 'train', index: 0.5 }]) {
    assert.equal((await postJson(`${url}/reset`, options)).status, 422, JSON.stringify(options));
  }
  const { splits, ...without } = counterEnvironment;
  const bare = await startServer(t, without);
  const refused = await getJson(`${bare.url}/counter/splits`);
  assert.deepEqual(
    [refused.status, refused.body.detail],
    [501, 'list_splits is not supported for this environment'],
  );
  assert.equal((await postJson(`${bare.url}/reset`, { split: 'nope' })).status, 200, 'an unknown option');
});
