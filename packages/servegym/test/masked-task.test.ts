import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AGENTS, QUICK } from '@servegym/agents';
import { llmserve, type ServeTask } from '@servegym/environments';
import { createServer, type ListeningServer } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import { loadTask } from '../src/cli/arguments/scenario-options.ts';
import { policiesOf } from '../src/server/open-environment.ts';
import { mountPolicyRoutes } from '../src/server/policy-routes.ts';

const MASKED = ['quantization_tier', 'prefill_decode_split'] as const;
const FREE = ['batch_cap', 'kv_budget_fraction', 'speculation_depth', 'priority_routing'] as const;
const file = join(import.meta.dirname, '../../environments/examples/fixed-arrangement.ts');

describe('a task of one’s own that masks knobs', () => {
  let task: ServeTask;
  let server: ListeningServer;
  before(async () => {
    task = llmserve.tasks.find(await loadTask(file))!;
    const open = createServer(llmserve.definition());
    mountPolicyRoutes(open, policiesOf(llmserve));
    server = await open.listen({ port: 0, host: '127.0.0.1' });
  });
  after(() => server.close());

  const call = async (path: string, body?: unknown) => {
    const answer = await fetch(`${server.url}${path}`, {
      ...(body !== undefined && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    return { status: answer.status, body: await answer.json() };
  };

  it('says so in the list of tasks', async () => {
    const { body } = await call('/tasks');
    const told = body.tasks.find(({ id }: { id: string }) => id === task.id);
    assert.deepEqual(told.masked_actions, MASKED);
    assert.deepEqual(told.active_actions, FREE);
  });

  it('refuses an action that turns one, over HTTP, and goes on', async () => {
    const { session_id } = (await call('/reset', { task_id: task.id, seed: 4 })).body;
    const refused = await call('/step', {
      session_id,
      action: { ...task.defaultAction, batch_cap: 64, quantization_tier: 'INT8' },
    });
    assert.equal(refused.status, 400);
    assert.equal(refused.body.code, 'MASKED_KNOB');
    assert.match(refused.body.detail, /`quantization_tier` to stay at "FP16", got "INT8"/);
    const { status, body } = await call('/step', {
      session_id,
      action: { ...task.defaultAction, batch_cap: 64 },
    });
    assert.equal(status, 200);
    assert.equal(body.observation.step_index, 1);
    for (const policy of ['random', 'heuristic', 'rule']) {
      const played = await call(`/policies/${policy}/step`, { session_id, steps: 3 });
      assert.equal(played.status, 200, JSON.stringify(played.body));
      for (const { action } of played.body.steps) {
        for (const knob of MASKED) assert.equal(action[knob], task.defaultAction[knob]);
      }
    }
    const grade = await call('/grader', {
      ...{ task_id: task.id, seed: 4 },
      episode_log: [{ ...task.defaultAction, prefill_decode_split: true }],
    });
    assert.deepEqual([grade.status, grade.body.code], [400, 'MASKED_KNOB']);
  });

  it('refuses it over a WebSocket, and goes on', async () => {
    const client = await connect<typeof llmserve>(server.url);
    await client.reset({ task_id: task.id, seed: 4 });
    await assert.rejects(client.step({ ...task.defaultAction, prefill_decode_split: true }), {
      reason: 'MASKED_KNOB',
    });
    const { observation } = await client.step(task.defaultAction);
    assert.equal(observation.step_index, 1);
    await client.close();
  });

  it('is checked by what is free', async () => {
    const { passed, results, bestConstant } = await AGENTS.llmserve.check(task, QUICK);
    assert.equal(passed, true);
    for (const knob of MASKED) assert.equal(bestConstant[knob], task.defaultAction[knob]);
    const dominance = results.find(({ id }) => id === 'knob_dominance')!.figures;
    assert.deepEqual(Object.keys(dominance).slice(-FREE.length), FREE);
    for (const knob of MASKED) assert.ok(!(knob in dominance));
    const ids = results.map(({ id }) => id);
    for (const id of [
      ...['most_quantization_tier', 'most_prefill_decode_split', 'int4_tuned'],
      ...['flapping_weights', 'flapping_split'],
    ])
      assert.ok(!ids.includes(id), id);
    for (const id of ['least_of_all', 'flapping_all', 'late_stop']) assert.ok(ids.includes(id), id);
  });

  it('is not asked for more live knobs than it has free ones', () => {
    const maskedKnobs = ['kv_budget_fraction', 'speculation_depth', 'priority_routing', ...MASKED] as const;
    const only = { ...task, difficulty: 'medium' as const, windows: 24, maskedKnobs };
    const actions = Array.from({ length: only.windows }, () => only.defaultAction);
    const { title, figures } = AGENTS.llmserve.knobDominance(only, [{ seed: 1, actions }], 2);
    assert.match(title, /^of at least 1 knobs/);
    assert.ok('batch_cap' in figures && !('speculation_depth' in figures));
  });
});
