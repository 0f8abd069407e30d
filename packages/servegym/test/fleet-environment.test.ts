import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { FleetEpisode, fleet } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import { validateServer } from '@servegym/openenv/validate';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { type PythonDriver, startPythonDriver } from './python-driver.ts';

const task = fleet.tasks.shipped.agents;
const action = { ...task.defaultAction, replicas: 6, routing_prefix: 1 };

const folder = temporaryFolder();

describe('servegym serve --env fleet', () => {
  let server: ServeProcess;
  let driver: PythonDriver;
  before(async () => {
    const [own, traffic] = [join(folder, 'own.json'), join(folder, 'traffic.csv')];
    writeFileSync(own, JSON.stringify({ ...task, id: 'own_agents', windows: 4 }));
    writeFileSync(traffic, 'arrival_s,input_tokens,output_tokens\n0,100,10\n40,200,10\n');
    server = await startServe('--env', 'fleet', '--task', own, '--traffic', traffic);
    driver = startPythonDriver();
  });
  after(async () => {
    await driver.stop();
    await server.stop();
  });
  const ask = async (path: string, body?: unknown) => {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    const answer = await fetch(server.url + path, body === undefined ? {} : init);
    return { status: answer.status, body: await answer.json() };
  };

  it('meets every criterion of validate', async () => {
    const { summary, passed } = await validateServer(server.url, {
      ...{ steps: 2, mostSessions: 2, timeoutMs: 100_000 },
      resetOptions: { task_id: task.id, hours: 0.1 },
    });
    assert.deepEqual(summary.failed_criteria, []);
    assert.equal(passed, true);
  });

  it('is played by the openenv client for Python, as in process, and graded', async () => {
    const seed = 2_000_000;
    const { first, rewards, last, state } = await driver.call('play_episode', {
      url: server.url,
      options: { task_id: task.id, seed, hours: 0.2 },
      action,
    });
    const episode = new FleetEpisode({ ...task, windows: 24 }, seed);
    assert.deepEqual({ ...first.observation, ...episode.observation() }, first.observation);
    const earned: number[] = [];
    while (!episode.done) earned.push(episode.step(action));
    assert.deepEqual(rewards, earned);
    assert.deepEqual({ ...last, ...episode.observation() }, last);
    assert.equal(state.revenue_usd, episode.totals.revenueUsd);
    const { body } = await ask('/grader', {
      ...{ task_id: task.id, seed, hours: 0.2 },
      episode_log: earned.map(() => ({ action })),
    });
    assert.equal(body.breakdown.return, state.cumulative_reward);
    assert.ok(body.score > 0 && body.score < 1);
  });

  it('plays and grades a task and a trace of its files', async () => {
    for (const [reset, windows] of [
      [{ task_id: 'own_agents', seed: 1 }, 4],
      [{ task_id: task.id, seed: 1, trace: 'traffic' }, 3],
    ] as const) {
      const { session_id } = (await ask('/reset', reset)).body;
      const played = await ask('/policies/rule/step', { session_id, steps: 10 });
      assert.equal(played.body.steps.length, windows);
      const { body } = await ask('/grader', { session_id });
      assert.deepEqual([body.breakdown.windows, body.breakdown.windows_played], [windows, windows]);
      assert.equal(body.estimated, true);
    }
    const unknown = await ask('/reset', { task_id: task.id, trace: 'nothing' });
    assert.equal(unknown.body.code, 'UNKNOWN_TRACE');
  });

  it('is played over WebSocket and HTTP, where a policy goes on with a session', async () => {
    const client = await connect(server.url);
    const reset = { task_id: task.id, seed: 5 };
    const opened = await client.reset(reset);
    const { session_id, observation } = (await ask('/reset', reset)).body;
    assert.deepEqual(observation, opened.observation);
    for (let window = 0; window < 3; window++) {
      const { reward, observation } = await client.step(action);
      const { body } = await ask('/step', { session_id, action });
      assert.deepEqual([body.reward, body.observation], [reward, observation]);
      assert.equal(body.metadata.replicas.length, 6);
    }
    await client.close();
    const played = await ask('/policies/hpa/step', { session_id, steps: 2 });
    assert.equal(played.body.steps?.length, 2, JSON.stringify(played.body));
    const wrong = await ask('/step', { session_id, action: { ...action, replicas: 33 } });
    assert.equal(wrong.status, 422);
    const unknown = await ask('/reset', { task_id: 'nope' });
    assert.deepEqual(unknown.status, 422);
  });
});
