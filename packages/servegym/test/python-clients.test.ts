import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { llmserve } from '@servegym/environments';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { type PythonDriver, python, startPythonDriver } from './python-driver.ts';

const execute = promisify(execFile);

describe('the openenv package of Python', () => {
  let server: ServeProcess;
  let driver: PythonDriver;
  before(async () => {
    driver = startPythonDriver();
    server = await startServe();
  });
  after(async () => {
    await driver.stop();
    await server.stop();
  });

  for (const task of llmserve.tasks.shippedIds) {
    it(`plays a whole episode of ${task} with its synchronous client`, async () => {
      const { first, rewards, last, state } = await driver.call('play_episode', {
        url: server.url,
        options: { task_id: task, seed: 7, episode_id: 'from-python' },
        action: llmserve.defaultAction,
      });

      assert.equal(first.reward, null);
      assert.equal(first.done, false);
      assert.equal(first.observation.step_index, 0);
      llmserve.definition().observation.parse(first.observation);
      llmserve.definition().observation.parse(last);

      assert.notEqual(rewards.length, 0);
      assert.ok(rewards.every((reward: unknown) => typeof reward === 'number' && Math.abs(reward) <= 1));
      assert.equal(last.step_index, rewards.length);
      assert.equal(state.episode_id, 'from-python');
      assert.equal(state.step_count, rewards.length);
      assert.equal(state.seed, 7);
      assert.equal(state.task_id, task);
      assert.equal(state.done, true);
    });
  }

  it('plays many isolated sessions at once with its asynchronous client', async () => {
    const seeds = Array.from({ length: 24 }, (_, index) => index % 12);
    const sessions = await driver.call('play_sessions', {
      url: server.url,
      task_id: llmserve.tasks.shippedIds[0],
      seeds,
      action: llmserve.defaultAction,
    });

    assert.equal(sessions.length, seeds.length);
    const episodes = new Set(
      sessions.map((session: { state: { episode_id: string } }) => session.state.episode_id),
    );
    assert.equal(episodes.size, seeds.length, 'every session has an episode of its own');
    for (const [index, { rewards, state }] of sessions.entries()) {
      assert.equal(state.seed, seeds[index]);
      assert.equal(state.step_count, rewards.length);
    }
    for (let index = 0; index < 12; index++) {
      assert.deepEqual(sessions[index].rewards, sessions[index + 12].rewards, 'same seed, same episode');
    }
    const distinct = new Set(sessions.map((session: { rewards: number[] }) => session.rewards.join()));
    assert.equal(distinct.size, 12, 'each seed has traffic of its own');
  });

  it('tells a Python user what is wrong with an action, and goes on', async () => {
    const { error, reward } = await driver.call('recover_from', {
      url: server.url,
      bad_action: { ...llmserve.defaultAction, batch_cap: 1000 },
      good_action: llmserve.defaultAction,
    });
    assert.match(error, /VALIDATION_ERROR/);
    assert.equal(typeof reward, 'number');
  });

  it('finds that the server meets every criterion of `openenv validate`', async () => {
    const openenv = join(dirname(python), 'openenv');
    const { stdout } = await execute(openenv, ['validate', '--url', server.url, '--json']);
    const { passed, summary } = JSON.parse(stdout);
    assert.equal(passed, true);
    assert.deepEqual([summary.passed_count, summary.total_count, summary.failed_criteria], [6, 6, []]);
  });
});
