import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createServer } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import { inferencegym } from './environment.ts';
import { wanderingGymActions } from './gym-actions.fixture.ts';
import { GYM_TASK_IDS } from './gym-tasks.ts';
import type { GymAction } from './schema.ts';

/** Rebuilt by running this test with UPDATE_GOLDEN=1. A change of any hash asks for a new `VERSION` of inferencegym.definition(). */
const GOLDEN = new URL('./golden-trajectories.json', import.meta.url);

interface Answer {
  readonly observation: unknown;
  readonly reward: number | null;
  readonly done: boolean;
}

interface Player {
  reset(options: { task_id: number; seed: number }): Promise<Answer> | Answer;
  step(action: GymAction): Promise<Answer> | Answer;
}

async function trajectoryHash(player: Player, taskId: number, seed: number): Promise<string> {
  const nextAction = wanderingGymActions(seed);
  const hash = createHash('sha256');
  let answer = await player.reset({ task_id: taskId, seed });
  while (!answer.done) {
    answer = await player.step(nextAction());
    hash.update(JSON.stringify([answer.reward, answer.observation]));
  }
  return hash.digest('hex');
}

const EPISODES = GYM_TASK_IDS.flatMap((taskId) => [0, 42, 2_000_000].map((seed) => ({ taskId, seed })));

describe('golden trajectories of inferencegym', async () => {
  const trajectories: Record<string, string> = {};
  for (const { taskId, seed } of EPISODES) {
    trajectories[`${taskId} ${seed}`] = await trajectoryHash(
      inferencegym.definition().create(),
      taskId,
      seed,
    );
  }
  const current = { version: inferencegym.version, trajectories };
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, `${JSON.stringify(current, null, 2)}\n`);
  const golden = JSON.parse(readFileSync(GOLDEN, 'utf8')) as typeof current;

  for (const [name, hash] of Object.entries(golden.trajectories)) {
    it(`are the same bits as ever (${name})`, () => assert.equal(trajectories[name], hash));
  }

  it('data: belong to this version of the environment', () => assert.equal(golden.version, current.version));

  it('are the same bits over WebSocket and HTTP', async (t) => {
    const listening = await createServer(inferencegym.definition()).listen({ port: 0, host: '127.0.0.1' });
    t.after(() => listening.close());
    const client = await connect<typeof inferencegym>(listening.url);
    assert.equal(await trajectoryHash(client, 3, 42), golden.trajectories['3 42']);
    await client.close();

    let session_id: string | undefined;
    const post = async (path: string, body: object): Promise<Answer> => {
      const answer = await fetch(listening.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, session_id }),
      });
      const json = (await answer.json()) as Answer & { session_id: string };
      ({ session_id } = json);
      return json;
    };
    const overHttp: Player = {
      reset: (options) => post('/reset', options),
      step: (action) => post('/step', { action }),
    };
    assert.equal(await trajectoryHash(overHttp, 2, 0), golden.trajectories['2 0']);
  });
});
