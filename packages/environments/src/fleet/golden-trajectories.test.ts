import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { ResetOptions } from '@servegym/openenv/definition';
import { RandomStream } from '@servegym/simulator';
import { fleet as registered } from './environment.ts';
import { FLEET_TASKS } from './fleet-task.ts';
import { FLEET_SHIFTS } from './scenario.ts';
import { FLEET_TASK_IDS, type FleetAction } from './schema.ts';

/** Rebuilt by running this test with UPDATE_GOLDEN=1. A change of any hash asks for a new `version` of fleet. */
const GOLDEN = new URL('./golden-trajectories.json', import.meta.url);
const fleet = registered.definition();

/** Ten minutes of each task on two seeds, and of `agents` in each way to change a task. */
const RESETS: Readonly<Record<string, ResetOptions>> = {
  ...Object.fromEntries(
    FLEET_TASK_IDS.flatMap((task_id) =>
      [1, 2_000_000].map((seed) => [`${task_id} ${seed}`, { task_id, seed }] as const),
    ),
  ),
  ...Object.fromEntries(
    FLEET_SHIFTS.map((shift) => [`agents 3 ${shift}`, { task_id: 'agents', seed: 3, shift }] as const),
  ),
  'agents 3 two kinds': { task_id: 'agents', seed: 3, second_profile: 'l40s-48gb-llama-3-8b' },
  'flash_crowds 3 b200': {
    ...{ task_id: 'flash_crowds', seed: 3 },
    ...{ profile: 'b200-180gb-llama-3-8b', rate_scale: 0.5 },
  },
};

/** Turns every knob now and then. */
function wanderingActions(standard: FleetAction, seed: number): () => FleetAction {
  const draws = new RandomStream(seed, 'golden');
  let action = standard;
  return () => {
    const next = { ...action };
    if (draws.uniform() < 0.4) next.replicas = draws.integer(0, 9);
    if (draws.uniform() < 0.3) next.second_replicas = draws.integer(0, 4);
    if (draws.uniform() < 0.2) next.prefill_replicas = draws.integer(0, 2);
    if (draws.uniform() < 0.3) next.routing_cache = draws.uniform();
    if (draws.uniform() < 0.3) next.routing_prefix = draws.uniform();
    if (draws.uniform() < 0.3) next.admission_seconds = draws.integer(0, 10);
    if (draws.uniform() < 0.2) next.max_num_batched_tokens = draws.integer(512, 8192);
    if (draws.uniform() < 0.2) next.max_num_active_seqs = draws.integer(16, 512);
    action = next;
    return action;
  };
}

async function trajectoryHash(reset: ResetOptions): Promise<string> {
  const environment = fleet.create();
  const nextAction = wanderingActions(FLEET_TASKS.diurnal.defaultAction, reset.seed!);
  const hash = createHash('sha256');
  let { done } = await environment.reset({ hours: 1 / 6, ...reset });
  while (!done) {
    const answer = await environment.step(nextAction());
    done = answer.done;
    hash.update(JSON.stringify([answer.reward, Object.entries(answer.observation).sort()]));
  }
  return hash.digest('hex');
}

describe('golden trajectories of fleet', async () => {
  const trajectories: Record<string, string> = {};
  for (const [name, reset] of Object.entries(RESETS)) trajectories[name] = await trajectoryHash(reset);
  const current = { version: fleet.version, trajectories };
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, `${JSON.stringify(current, null, 2)}\n`);
  const golden = JSON.parse(readFileSync(GOLDEN, 'utf8')) as typeof current;

  it('data: are those of the file, no more and no less', () =>
    assert.deepEqual(Object.keys(golden.trajectories), Object.keys(current.trajectories)));
  for (const [name, hash] of Object.entries(golden.trajectories)) {
    it(`are the same bits as ever (${name})`, () => assert.equal(current.trajectories[name], hash));
  }
  it('data: belong to this version of the environment', () => assert.equal(golden.version, current.version));
});
