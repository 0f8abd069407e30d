import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { llmserve } from './environment.ts';
import { QUANTIZATION_TIERS, type ServeAction, TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './tasks/serve-tasks.ts';

/** Rebuilt by running this test with UPDATE_GOLDEN=1. A change of any hash asks for a new `version` of llmserve. */
const GOLDEN = new URL('./golden-trajectories.json', import.meta.url);

/** Turns every knob now and then, the costly ones less often. */
function wanderingActions(seed: number, initial: ServeAction): () => ServeAction {
  const draws = new RandomStream(seed, 'golden');
  let action = initial;
  return () => {
    const next = { ...action };
    if (draws.uniform() < 0.5) next.batch_cap = draws.integer(1, 160);
    if (draws.uniform() < 0.5) next.kv_budget_fraction = 0.1 + draws.integer(0, 90) / 100;
    if (draws.uniform() < 0.3) next.speculation_depth = draws.integer(0, 8);
    if (draws.uniform() < 0.1) next.quantization_tier = QUANTIZATION_TIERS[draws.integer(0, 2)];
    if (draws.uniform() < 0.1) next.prefill_decode_split = !next.prefill_decode_split;
    if (draws.uniform() < 0.3) next.priority_routing = !next.priority_routing;
    action = next;
    return action;
  };
}

function trajectoryHash(taskId: (typeof TASK_IDS)[number], seed: number): string {
  const episode = new ServeEpisode(SERVE_TASKS[taskId], seed);
  const nextAction = wanderingActions(seed, episode.action);
  const hash = createHash('sha256');
  while (!episode.done) {
    const reward = episode.step(nextAction());
    hash.update(JSON.stringify([reward, episode.observation()]));
  }
  return hash.digest('hex');
}

describe('golden trajectories of llmserve', () => {
  const current = {
    version: llmserve.version,
    trajectories: Object.fromEntries(
      TASK_IDS.flatMap((taskId) =>
        [0, 1, 2_000_000].map((seed) => [`${taskId} ${seed}`, trajectoryHash(taskId, seed)]),
      ),
    ),
  };
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, `${JSON.stringify(current, null, 2)}\n`);
  const golden = JSON.parse(readFileSync(GOLDEN, 'utf8')) as typeof current;

  for (const [name, hash] of Object.entries(golden.trajectories)) {
    it(`are the same bits as ever (${name})`, () => assert.equal(current.trajectories[name], hash));
  }
  it('belong to this version of the environment', () => assert.equal(golden.version, current.version));
});
