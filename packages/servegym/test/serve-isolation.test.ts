import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { llmserve } from '@servegym/environments';
import { createServer } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { policiesOf } from '../src/server/open-environment.ts';
import { mountPolicyRoutes } from '../src/server/policy-routes.ts';
import { type RunningServer, type StartOptions, startServer } from '../src/server/start-server.ts';

/** Parsed JSON of a reply. */
// biome-ignore lint/suspicious/noExplicitAny: its shape is what the tests are there to find out
type LooseJson = any;

/** As heavy an episode as the default limits allow. */
const HEAVY = { task_id: 'bursty_workload', seed: 5, rate_scale: 3.6 };
const TOO_LARGE = { task_id: 'static_workload', seed: 5, rate_scale: 20 };
const ACTION = llmserve.tasks.shipped.bursty_workload.defaultAction;

async function start(t: TestContext, options: Partial<StartOptions> = {}): Promise<RunningServer> {
  const server = await startServer({
    environments: ['llmserve'],
    port: 0,
    host: '127.0.0.1',
    maxEpisodeSize: 20_000,
    maxTotalSize: 100_000,
    ...options,
  });
  t.after(() => server.close());
  return server;
}

async function post(
  url: string,
  body: unknown,
  { signal, token }: { signal?: AbortSignal; token?: string } = {},
) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  return { status: answer.status, body: (await answer.json()) as LooseJson };
}

/** Lets `oracle` plan a heavy episode; tells whether it is still at it. */
async function plan(url: string, token = '') {
  const { body } = await post(`${url}/reset`, HEAVY, { token });
  const leaving = new AbortController();
  const { signal } = leaving;
  let isOver = false;
  const answer = post(`${url}/policies/oracle/step`, { session_id: body.session_id }, { signal, token })
    .catch((error) => error)
    .finally(() => {
      isOver = true;
    });
  return { answer, leave: () => leaving.abort(), isOver: () => isOver };
}

async function idle(server: RunningServer): Promise<void> {
  while (server.longRequests > 0) await setImmediate();
}

describe('a server that plans a heavy episode', () => {
  it('answers /health and the steps of others meanwhile, and stops planning when the client leaves', async (t) => {
    const server = await start(t);
    const client = await connect(server.url);
    await client.reset({ task_id: 'bursty_workload', seed: 1 });
    const planning = await plan(server.url);
    for (let step = 0; step < 30; step++) {
      await client.step({ ...ACTION });
      assert.equal((await fetch(`${server.url}/health`)).status, 200);
    }
    assert.equal(planning.isOver(), false, 'the plan came before the steps of others');
    assert.equal(server.longRequests, 1);
    planning.leave();
    assert.equal((await planning.answer).name, 'AbortError');
    await idle(server);
    await client.close();
  });

  it('ends the work that takes too long, and goes on', async (t) => {
    const server = await start(t, { work: { seconds: 1, threads: 2 } });
    const late = await plan(server.url);
    const { status, body } = await late.answer;
    assert.deepEqual([status, body.code], [503, 'WORK_TIMEOUT']);
    assert.match(body.detail, /1 s that this server allows/);
    await idle(server);
  });

  it('refuses what is more than one client may have under way', async (t) => {
    const server = await start(t, {
      work: { seconds: 3600, threads: 2 },
      maxTotalSize: 1_000_000,
    });
    const many = await Promise.all(Array.from({ length: 10 }, () => plan(server.url)));
    const refused: unknown[] = [];
    await new Promise<void>((resolve) => {
      for (const { answer } of many) {
        void answer.then(({ status, body }) => {
          if (refused.push([status, body?.code]) === 2) resolve();
        });
      }
    });
    assert.deepEqual(refused, new Array(2).fill([429, 'WORK_QUEUE_FULL']));
    assert.equal(server.longRequests, 8);
    for (const { leave } of many) leave();
    await idle(server);
  });

  it('serves one client over a WebSocket while another waits for its own work', {
    timeout: 60_000,
  }, async (t) => {
    const server = await start(t, {
      work: { seconds: 3600, threads: 2 },
      guard: { tokens: ['busy', 'calm'] },
    });
    const planning = [await plan(server.url, 'busy'), await plan(server.url, 'busy')];
    while (server.longRequests < 2) await setImmediate();
    const calm = await connect(server.url, { token: 'calm' });
    await calm.reset({ task_id: 'static_workload', seed: 1, rate_scale: 0.1 });
    await calm.step({ ...ACTION });
    const grade = (await calm.callTool('grade_episode', {})) as LooseJson;
    assert.ok(grade.score > 0);
    assert.deepEqual([server.longRequests, ...planning.map(({ isOver }) => isOver())], [2, false, false]);
    await calm.close();
    for (const { leave } of planning) leave();
    await idle(server);
  });

  it('forgets the work of a client that leaves its WebSocket', { timeout: 60_000 }, async (t) => {
    const server = await start(t, { work: { seconds: 3600, threads: 2 } });
    const planning = await plan(server.url);
    const leaving = await connect(server.url);
    await leaving.reset({ task_id: 'static_workload', seed: 1, rate_scale: 0.1 });
    const grade = leaving.callTool('grade_episode', {}).catch((error: Error) => error);
    while (server.longRequests < 2) await setImmediate();
    await leaving.close();
    assert.ok((await grade) instanceof Error);
    while (server.longRequests > 1) await setImmediate();
    assert.equal(planning.isOver(), false);
    planning.leave();
    await idle(server);
  });

  it('ends the work that needs too much memory, and goes on', async (t) => {
    const server = await start(t, { work: { heapMb: 12, threads: 1 } });
    for (let attempt = 0; attempt < 2; attempt++) {
      const { status, body } = await (await plan(server.url)).answer;
      assert.deepEqual([status, body.code], [503, 'WORK_MEMORY']);
    }
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
  });

  it('stops at once when it is told to', { timeout: 60_000 }, async (t) => {
    const server = await startServe(
      '--env',
      'llmserve',
      '--drain-timeout',
      '0',
      '--limit',
      'work-seconds=3600',
    );
    t.after(() => server.stop('SIGKILL'));
    const planning = await plan(server.url);
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
    const { code } = await server.stop('SIGTERM');
    assert.equal(code, 0);
    assert.ok((await planning.answer) instanceof Error);
  });
});

describe('a limit of requests', () => {
  it('holds for all environments of a port together', async (t) => {
    const { url } = await start(t, {
      environments: ['llmserve', 'inferencegym'],
      guard: { rateLimit: { requests: 2, perMs: 60_000 } },
    });
    const statuses = [];
    for (const path of ['', '/inferencegym', '', '/inferencegym']) {
      statuses.push((await fetch(`${url}${path}/metadata`)).status);
    }
    assert.deepEqual(statuses, [200, 200, 429, 429]);
  });
});

describe('an episode over the limit', () => {
  const inline = {
    arrival_s: Array.from({ length: 4001 }, (_, i) => i / 100),
    input_tokens: new Array(4001).fill(5),
    output_tokens: new Array(4001).fill(5),
  };

  it('is refused over HTTP, also as a log to grade', async (t) => {
    const { url } = await start(t);
    for (const options of [TOO_LARGE, { ...HEAVY, rate_scale: 1, trace: inline }]) {
      for (const path of ['/reset', '/grader']) {
        const log = path === '/grader' && { episode_log: [] };
        const { status, body } = await post(`${url}${path}`, { ...options, ...log });
        assert.deepEqual([status, body.code], [400, 'EPISODE_TOO_LARGE'], path);
        assert.match(body.detail, /^Expected an episode of at most 20000 requests, got one of about \d+\./);
      }
    }
    assert.equal((await (await fetch(`${url}/health`)).json()).active_sessions, 0);
  });

  it('is refused over a WebSocket, as a vector, and over MCP, and the client goes on', async (t) => {
    const { url } = await start(t);
    const refused = { reason: 'EPISODE_TOO_LARGE' };
    const client = await connect(url);
    await client.reset({ ...HEAVY, rate_scale: 1 });
    await assert.rejects(client.reset(TOO_LARGE), refused);
    await assert.rejects(client.callTool('start_episode', TOO_LARGE), /at most 20000 requests/);
    assert.equal((await client.step({ ...ACTION })).done, false);
    await client.close();
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`);
    const next = () =>
      new Promise<LooseJson>((resolve) => {
        socket.onmessage = ({ data }) => resolve(JSON.parse(data));
      });
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    for (const data of [
      { count: 2, options: TOO_LARGE },
      { count: 1000, options: { task_id: 'static_workload' } },
    ]) {
      socket.send(JSON.stringify({ type: 'vector_reset', data }));
      const { type, data: error } = await next();
      assert.deepEqual([type, error.reason], ['error', 'EPISODE_TOO_LARGE']);
    }
    socket.send(JSON.stringify({ type: 'vector_reset', data: { count: 8, seed: 3 } }));
    assert.equal((await next()).data.observations.length, 8);
    socket.close();
    const { body } = await post(`${url}/mcp`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'start_episode', arguments: TOO_LARGE },
    });
    assert.deepEqual(body.error.data, refused);
  });

  it('makes room among the sessions that nobody holds when the sum is reached', async (t) => {
    const server = await start(t);
    for (let reset = 0; reset < 8; reset++) {
      const { status } = await post(`${server.url}/reset`, HEAVY);
      assert.equal(status, 200);
    }
    const { active_sessions: active } = await (await fetch(`${server.url}/health`)).json();
    assert.equal(active, 5);
  });
});

describe('what is done on worker threads', () => {
  it('is what this process would do, bit for bit', async (t) => {
    const { url } = await start(t);
    const inProcess = createServer(llmserve.definition());
    mountPolicyRoutes(inProcess, policiesOf(llmserve));
    const here = await inProcess.listen({ port: 0, host: '127.0.0.1' });
    t.after(() => here.close());
    const episode = { task_id: 'static_workload', seed: 12_345, rate_scale: 0.3 };
    const played = async (base: string) => {
      const { body } = await post(`${base}/reset`, episode);
      const { session_id } = body;
      const steps: unknown[] = [];
      const play = async (path: string, more: object) => {
        const answer = await post(`${base}${path}`, { session_id, ...more });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        const { session_id: _, ...told } = answer.body;
        steps.push(told);
      };
      await play('/policies/mpc/step', { steps: 2 });
      await play('/step', { action: ACTION });
      await play('/policies/mpc/step', { steps: 1 });
      await play('/policies/oracle/step', { steps: 2 });
      await play('/policies/mpc/step', { steps: 1 });
      await play('/policies/oracle/step', { steps: 53 });
      await play('/grader', {});
      return steps;
    };
    assert.deepEqual(await played(url), await played(here.url));
  });
});
