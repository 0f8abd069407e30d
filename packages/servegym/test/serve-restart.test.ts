import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fleet, llmserve, type ServeAction } from '@servegym/environments';
import type { ResetOptions } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import { type ServeProcess, startServe, startServeWith } from '../../../maintenance/test-servers/servegym.ts';

const STEPS = 40;

/** Turns every knob now and then, so that no two windows are served alike. */
const ACTIONS: readonly ServeAction[] = Array.from({ length: STEPS }, (_, index) => ({
  ...llmserve.defaultAction,
  batch_cap: 16 + ((index * 37) % 400),
  kv_budget_fraction: 0.3 + ((index * 7) % 11) / 20,
  speculation_depth: index % 5,
  quantization_tier: index % 16 < 8 ? 'FP16' : 'INT8',
  priority_routing: index % 3 === 0,
}));

/** Answers of a server that is never killed, as its clients read them. */
async function uninterrupted(options: ResetOptions) {
  const environment = llmserve.definition().create();
  const results = [await environment.reset(options)];
  for (const action of ACTIONS) results.push(await environment.step(action));
  return results.map(asRead);
}

function asRead({
  observation,
  reward,
  done,
}: {
  observation: object;
  reward: number | null;
  done: boolean;
}) {
  return JSON.parse(JSON.stringify({ observation, reward, done }));
}

async function post(url: string, body: object) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

describe('servegym serve, killed with several environments on one file', () => {
  it('goes on with the session of each below its path, and gives it to no other', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-several-'));
    const servers: ServeProcess[] = [];
    t.after(async () => {
      await Promise.all(servers.map((server) => server.stop('SIGKILL')));
      rmSync(folder, { recursive: true });
    });
    const start = async () => {
      servers.push(await startServe('--store', join(folder, 'sessions.db')));
      return servers.at(-1)!;
    };
    const first = await start();
    const gym = (await post(`${first.url}/inferencegym/reset`, { task_id: 2, seed: 5 })).body;
    const serve = (await post(`${first.url}/reset`, { task_id: 'static_workload', seed: 5 })).body;
    const { tasks } = await (await fetch(`${first.url}/inferencegym/tasks`)).json();
    const action = tasks[1].default_action;
    const step = async (root: string, session_id: string, chosen: object) =>
      (await post(`${root}/step`, { session_id, action: chosen })).status;
    assert.equal(await step(`${first.url}/inferencegym`, gym.session_id, action), 200);
    assert.equal(await step(first.url, serve.session_id, llmserve.defaultAction), 200);
    await first.stop('SIGKILL');

    const second = await start();
    const steps = async (root: string, session: string) => {
      const answer = await fetch(`${root}/state?session_id=${session}`);
      return answer.ok ? (await answer.json()).step_count : answer.status;
    };
    assert.equal(await steps(`${second.url}/inferencegym`, gym.session_id), 1);
    assert.equal(await steps(second.url, serve.session_id), 1);
    assert.notEqual(await steps(`${second.url}/benchmark`, serve.session_id), 1);
    assert.equal(await step(`${second.url}/inferencegym`, gym.session_id, action), 200);
    const ended = await second.stop('SIGTERM');
    assert.deepEqual([ended.code, ended.stderr], [0, '']);
  });

  it('goes on with an episode of fleet as if nothing had been', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-fleet-'));
    const servers: ServeProcess[] = [];
    t.after(async () => {
      await Promise.all(servers.map((server) => server.stop('SIGKILL')));
      rmSync(folder, { recursive: true });
    });
    const start = async () => {
      servers.push(await startServe('--store', join(folder, 'sessions.db')));
      return `${servers.at(-1)!.url}/fleet`;
    };
    const options = { task_id: 'agents', seed: 5, hours: 0.1 };
    const environment = fleet.definition().create();
    const expected = [await environment.reset(options)];
    const url = await start();
    // Replicas that start and drain when the server is killed, and another token budget.
    const actions = [4, 9, 2, 7, 7, 3, 5, 8].map((replicas, window) => ({
      ...fleet.tasks.shipped.agents.defaultAction,
      replicas,
      max_num_batched_tokens: window % 2 === 0 ? 512 : 8192,
    }));
    for (const action of actions) expected.push(await environment.step(action));
    const { session_id } = (await post(`${url}/reset`, options)).body;
    const step = async (root: string, action: object) =>
      asRead((await post(`${root}/step`, { session_id, action })).body);
    const played: object[] = [];
    for (const action of actions.slice(0, 4)) played.push(await step(url, action));
    await servers[0]!.stop('SIGKILL');
    const next = await start();
    for (const action of actions.slice(4)) played.push(await step(next, action));
    assert.deepEqual(played, expected.slice(1).map(asRead));
  });
});

describe('servegym serve, killed with -9 in mid-episode and started again on the same file', () => {
  let folder: string;
  let store: string;
  const servers: ServeProcess[] = [];
  const start = async () => {
    const server = await startServe('--store', store);
    servers.push(server);
    return server;
  };
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-restart-'));
    store = join(folder, 'made', 'on', 'demand', 'sessions.db');
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop('SIGKILL')));
    rmSync(folder, { recursive: true });
  });

  it('goes on with a session over WebSocket as if nothing had been, though a step was under way', async () => {
    const options = { task_id: 'adversarial_multitenant', seed: 11 };
    const expected = await uninterrupted(options);
    const first = await start();
    const before = await connect<typeof llmserve>(first.url);
    const { sessionId } = before;
    assert.deepEqual(asRead(await before.reset(options)), expected[0]);
    let acknowledged = 0;
    for (; acknowledged < 15; acknowledged++) {
      assert.deepEqual(asRead(await before.step(ACTIONS[acknowledged])), expected[acknowledged + 1]);
    }
    const underWay = before.step(ACTIONS[acknowledged]).then(
      () => acknowledged++,
      () => {},
    );
    await first.stop('SIGKILL');
    await underWay;

    const second = await start();
    await using client = await connect<typeof llmserve>(second.url, { sessionId });
    const { step_count: kept } = await client.state();
    assert.ok(
      kept === acknowledged || kept === 16,
      `${kept} steps are there, ${acknowledged} were acknowledged`,
    );
    for (let step = kept; step < STEPS; step++) {
      assert.deepEqual(asRead(await client.step(ACTIONS[step])), expected[step + 1], `step ${step}`);
    }
    const { score } = await client.grade();
    assert.equal(score, (await llmserve.definition().grade!({ reset: options, actions: ACTIONS })).score);
  });

  it('goes on with a session over HTTP, of which the server itself drew the seed', async () => {
    const first = await start();
    const { body: begun } = await post(`${first.url}/reset`, { task_id: 'bursty_workload' });
    const { session_id } = begun;
    const { body: stepped } = await post(`${first.url}/step`, { session_id, action: ACTIONS[0] });
    const state = await (await fetch(`${first.url}/state?session_id=${session_id}`)).json();
    await first.stop('SIGKILL');

    const second = await start();
    assert.deepEqual(await (await fetch(`${second.url}/state?session_id=${session_id}`)).json(), state);
    const expected = await uninterrupted({ task_id: 'bursty_workload', seed: state.seed });
    assert.deepEqual([asRead(begun), asRead(stepped)], expected.slice(0, 2));
    for (let step = 1; step < STEPS; step++) {
      const { body } = await post(`${second.url}/step`, { session_id, action: ACTIONS[step] });
      assert.deepEqual(asRead(body), expected[step + 1], `step ${step}`);
    }
  });
});

describe('servegym serve, when it is not told where to keep sessions', () => {
  it("keeps them in the person's state folder, and says so", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-state-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const variables = {
      SERVEGYM_STORE: undefined,
      HOME: folder,
      XDG_STATE_HOME: undefined,
      LOCALAPPDATA: undefined,
    };
    const first = await startServeWith(variables);
    const [, file] = await first.said(/^Sessions are kept in (.+)$/m);
    assert.ok(file!.startsWith(folder), file);
    const { session_id } = (await post(`${first.url}/reset`, {})).body;
    await first.stop('SIGKILL');
    const second = await startServeWith(variables);
    t.after(() => second.stop());
    assert.equal(
      (await post(`${second.url}/step`, { session_id, action: llmserve.defaultAction })).status,
      200,
    );
  });

  it('keeps none with --store memory', async (t) => {
    const first = await startServe('--store', 'memory');
    const { session_id } = (await post(`${first.url}/reset`, {})).body;
    const { stdout } = await first.stop();
    assert.doesNotMatch(stdout, /kept/);
    const second = await startServe('--store', 'memory');
    t.after(() => second.stop());
    const { status, body } = await post(`${second.url}/step`, { session_id, action: llmserve.defaultAction });
    assert.deepEqual([status, body.code], [410, 'SESSION_DELETED']);
  });
});

describe('a reset without a seed', () => {
  it('plays an episode of its own each time, and tells its seed', async (t) => {
    const server = await startServe();
    t.after(() => server.stop());
    const seeds = new Set<number>();
    for (const body of ['', '{}', 'null', '{"seed": null}', '{}']) {
      const answer = await fetch(`${server.url}/reset`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      assert.equal(answer.status, 200, body);
      const { session_id } = await answer.json();
      const { seed } = await (await fetch(`${server.url}/state?session_id=${session_id}`)).json();
      seeds.add(seed);
    }
    await using client = await connect<typeof llmserve>(server.url);
    await client.reset();
    seeds.add((await client.state()).seed!);
    assert.equal(seeds.size, 6, 'every seed is another');
  });
});
