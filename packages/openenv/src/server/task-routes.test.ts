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
  await socket.ask({ type: 'reset', data: { split: 'train', index: 3, seed: 8 } });
  assert.equal((await socket.ask({ type: 'state' })).data.seed, 8, 'what is said outright wins');
  await socket.close();
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
