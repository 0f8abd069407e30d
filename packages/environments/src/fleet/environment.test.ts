import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import { controlledReturn } from './anchors/fleet-anchors.ts';
import { hpaInFlight } from './anchors/replica-scaler.ts';
import { fleetEnvironment } from './environment.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { gradeFleetEpisode } from './grader.ts';
import { drawFleetRequests } from './requests/draw-requests.ts';
import { type FleetAction, fleetStateSchema } from './schema.ts';
import { FLEET_TASKS } from './task-registry.ts';
import type { FleetWindowReport } from './window-report.ts';

const codeOf = (code: string) => (error: unknown) => error instanceof EnvironmentError && error.code === code;
const fleet = fleetEnvironment();
const { agents: task } = FLEET_TASKS;
const { defaultAction: standard } = task;

describe('the fleet environment', () => {
  it('earns what the requests inside their objectives are worth, less the GPUs, and keeps totals', async () => {
    const environment = fleet.create();
    const { observation, reward } = await environment.reset({ task_id: 'agents', seed: 3 });
    assert.deepEqual([observation.task_id, observation.step_index, reward], ['agents', 0, null]);
    let sum = 0;
    for (let window = 1; window <= 4; window++) {
      const { reward, metadata } = await environment.step(standard);
      const { revenue_usd, gpu_usd } = (metadata as unknown as FleetWindowReport).reward_components;
      assert.ok(Math.abs((revenue_usd - gpu_usd) / task.referenceUsd - (reward ?? 0)) < 1e-12);
      sum += reward ?? 0;
    }
    const state = fleetStateSchema.parse(environment.state());
    assert.deepEqual([state.cumulative_reward, state.elapsed_simulated_time_s], [sum, 120]);
    assert.ok(state.total_attained > 100 && state.total_attained <= state.total_requests);
  });

  it('lets replicas that no GPU is free for wait', async () => {
    const environment = fleet.create();
    await environment.reset({ task_id: 'agents', seed: 3 });
    const { observation } = await environment.step({ ...standard, replicas: 32, second_replicas: 3 });
    assert.equal(observation.replicas_ready + observation.replicas_starting, task.maxReplicas);
  });

  it('bills two kinds of replicas by their prices', () => {
    const second = { profile: 'a100-80gb-llama-3-8b', coldStartSeconds: [30, 30] } as const;
    const episode = new FleetEpisode({ ...task, second, maxReplicas: 5 }, 3);
    episode.step({ ...standard, second_replicas: 4 });
    const [h100, a100] = episode.profiles.map(({ gpu }) => gpu.count * gpu.usdPerHour);
    assert.ok(Math.abs(episode.billUsd - ((4 * h100 + a100) * 30) / 3600) < 1e-12);
    assert.equal(episode.observation().second_replicas_starting, 1);
    assert.equal(episode.observation().server.second.usd_per_replica_hour, a100);
    episode.step({ ...standard, second_replicas: 1 });
    assert.deepEqual(
      [episode.observation().second_replicas_ready, episode.observation().replicas_ready],
      [1, 5],
    );
  });

  it('refuses what it cannot do, with a code', () => {
    assert.throws(() => fleet.create().step(standard), codeOf('NOT_RESET'));
    assert.throws(() => fleet.create().reset({ task_id: 'nope' }), codeOf('UNKNOWN_TASK'));
    assert.throws(() => fleet.create().reset({ seed: -1 }), codeOf('INVALID_SEED'));
  });
});

describe('the grade of an episode of fleet', () => {
  const seed = 2_000_001;
  const reset = { task_id: 'agents', seed };

  it('is 0.20 for the autoscaler, and less for an early stop', () => {
    const requests = drawFleetRequests(task, seed);
    const autoscaler = hpaInFlight();
    const actions: FleetAction[] = [];
    const total = controlledReturn(task, seed, requests, {
      name: 'recorded',
      reset: () => autoscaler.reset(),
      act(step) {
        actions.push(autoscaler.act(step));
        return actions[actions.length - 1];
      },
    });
    const grade = gradeFleetEpisode({ reset, actions });
    assert.equal(grade.score, 0.2);
    assert.equal(grade.breakdown.return, total);
    const stopped = gradeFleetEpisode({ reset, actions: actions.slice(0, 200) });
    assert.ok(stopped.score > 0 && stopped.score < 0.2);
    assert.match(stopped.feedback, /40 of 240 windows were not played/);
    const episode = new FleetEpisode(task, seed, requests);
    for (const action of actions.slice(0, 200)) episode.step(action);
    const [{ gpu }] = episode.profiles;
    const idle = (40 * task.maxReplicas * gpu.count * gpu.usdPerHour * 30) / 3600 / task.referenceUsd;
    assert.ok(Math.abs(Number(stopped.breakdown.return) - (episode.totals.reward - idle)) < 1e-9);
  });

  it('refuses more actions than there are windows', () => {
    const actions = Array.from({ length: 241 }, () => standard);
    assert.throws(() => gradeFleetEpisode({ reset, actions }), codeOf('EPISODE_TOO_LONG'));
  });
});
