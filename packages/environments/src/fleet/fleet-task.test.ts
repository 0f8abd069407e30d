import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import { fleet as registered } from './environment.ts';
import { FLEET_TASKS, fleetTasks } from './fleet-task.ts';

/** A task as its file holds it. */
const fileOf = (task: object) => JSON.parse(JSON.stringify({ ...task, id: 'own' }));
const agents = fileOf(FLEET_TASKS.agents);

describe('a task of fleet in a file', () => {
  it('can say all that our own tasks say', () => {
    for (const task of Object.values(FLEET_TASKS)) {
      assert.deepEqual(fleetTasks.parse(fileOf(task), 'copy'), fileOf(task));
    }
  });

  it('is refused with the field that is wrong', () => {
    const [sessions, ...others] = agents.streams;
    const withStream = (change: object) => ({ streams: [{ ...sessions, ...change }, ...others] });
    const turns = { ...sessions.turns, thinkSeconds: { ...sessions.turns.thinkSeconds, min: 1 } };
    for (const [change, message] of [
      [{ id: 'With Spaces' }, /id: Expected lower-case/],
      [{ profile: 'h100' }, /profile: .*closest/],
      [{ profile: 'l4-24gb-llama-3-8b' }, /profile: .*KV pool holds the longest request/],
      [{ second: { profile: 'nope', coldStartSeconds: [1, 2] } }, /second\.profile/],
      [{ coldStartSeconds: [60, 30] }, /coldStartSeconds: .*lower end first/],
      [{ maxReplicas: 33 }, /maxReplicas/],
      [{ windows: 0 }, /windows/],
      [{ maskedKnobs: ['knob'] }, /maskedKnobs\.0/],
      [{ defaultAction: { ...agents.defaultAction, replicas: -1 } }, /defaultAction\.replicas/],
      [{ streams: [] }, /streams/],
      [{ streams: [sessions, sessions] }, /streams: .*name of its own/],
      [withStream({ lengths: 'azure-conversation-2023' }), /streams\.0: .*log-normal/],
      [{ metricsIntervalMs: 2000, ...withStream({ turns }) }, /turns\.thinkSeconds\.min: .*2 s/],
      [{ price: {} }, /price/],
    ] as const) {
      assert.throws(
        () => fleetTasks.parse({ ...agents, ...change }, 'own.json'),
        (error) => error instanceof EnvironmentError && message.test(error.message),
        JSON.stringify(change),
      );
    }
  });

  it('is played under its id, with its knobs masked, in a version of its own', async () => {
    const { version } = registered.definition();
    fleetTasks.add(
      fleetTasks.parse({ ...agents, id: 'masked_own', maskedKnobs: ['replicas'], windows: 2 }, 'own'),
    );
    const fleet = registered.definition();
    assert.notEqual(fleet.version, version);
    const described = fleet.tasks?.find(({ id }) => id === 'masked_own');
    assert.deepEqual(described?.masked_actions, ['replicas', 'second_replicas']);
    const environment = fleet.create();
    await environment.reset({ task_id: 'masked_own', seed: 1 });
    await environment.step({ ...agents.defaultAction, routing_prefix: 1 });
    await assert.rejects(
      async () => environment.step({ ...agents.defaultAction, replicas: 5 }),
      (error) => error instanceof EnvironmentError && error.code === 'MASKED_KNOB',
    );
    const actions = [{ ...agents.defaultAction, replicas: 5 }];
    assert.throws(
      () => registered.grade({ reset: { task_id: 'masked_own', seed: 1 }, actions }),
      (error) => error instanceof EnvironmentError && error.code === 'MASKED_KNOB',
    );
    assert.throws(() => fleetTasks.add(FLEET_TASKS.agents), RangeError);
  });
});
