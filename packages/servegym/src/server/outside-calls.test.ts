import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@servegym/openenv/client';
import { ACTION, PROMPT_TOKENS, type ScriptedModel, startScriptedModel } from '../../test/scripted-model.ts';
import { type StartOptions, startServer } from './start-server.ts';

describe('what clients cause at a language model', () => {
  let model: ScriptedModel;
  let asked: number;
  const variables = { ...process.env };
  before(async () => {
    model = await startScriptedModel(() => ({ content: JSON.stringify(ACTION) }));
    for (const name of ['OPENAI_API_KEY', 'HF_TOKEN', 'API_BASE_URL']) delete process.env[name];
    process.env.OPENAI_BASE_URL = model.baseUrl;
  });
  beforeEach(() => {
    asked = model.requests.length;
  });
  after(async () => {
    process.env = variables;
    await model.close();
  });

  /** A server, and a client of it for each address. */
  async function serve(t: TestContext, options: StartOptions, environment = 'llmserve') {
    const server = await startServer({ environments: [environment], trustedProxies: 1, ...options });
    t.after(() => server.close());
    return (address: string, token?: string) => {
      const post = async (path: string, body: object) => {
        const authorization = token === undefined ? undefined : `Bearer ${token}`;
        const answer = await fetch(`${server.url}/${path}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'x-forwarded-for': address,
            ...(authorization && { authorization }),
          },
          body: JSON.stringify(body),
        });
        return { status: answer.status, body: await answer.json() };
      };
      const play = async (steps: number) => {
        const { body } = await post('reset', { task_id: 'static_workload', seed: 1 });
        return post('policies/llm/step', { session_id: body.session_id, steps });
      };
      return { url: server.url, post, play };
    };
  }
  const strangers = Array.from({ length: 40 }, (_, i) => `203.0.113.${i}`);

  it('is nothing where the server asks for no token', async (t) => {
    const client = await serve(t, {});
    const answers = await Promise.all(strangers.map((address) => client(address).play(80)));
    for (const { status, body } of answers) {
      assert.deepEqual([status, body.code], [403, 'CALLS_OFF']);
      assert.match(body.detail, /SERVEGYM_TOKEN.*--limit calls=/);
    }
    const { status, body } = await client('203.0.113.9').post('baseline', { use_openai: true });
    assert.deepEqual([status, body.code], [403, 'CALLS_OFF']);
    assert.equal(model.requests.length, asked);
  });

  it('is no more than each of them may have, and a few of them, whoever they say they are', async (t) => {
    const client = await serve(t, { outside: { calls: 10 } });
    const [first] = strangers;
    assert.equal((await client(first).play(10)).status, 200);
    const more = await client(first).play(1);
    assert.deepEqual([more.status, more.body.code], [429, 'TOO_MANY_CALLS']);
    assert.equal(model.requests.length - asked, 10);
    for (const address of strangers.slice(1)) await client(address).play(80);
    assert.equal(model.requests.length - asked, 40);
    const baseline = await client('198.51.100.1').post('baseline', { use_openai: true });
    assert.deepEqual([baseline.status, baseline.body.code], [429, 'TOO_MANY_CALLS']);
  });

  it('has a limit in tokens, with those of `/baseline`', async (t) => {
    const tokens = { tokens: 5 * PROMPT_TOKENS };
    const client = await serve(t, { guard: { tokens: ['secret'] }, outside: tokens });
    const owner = client('203.0.113.1', 'secret');
    const { status } = await owner.post('baseline', { use_openai: true, task_id: 'static_workload' });
    assert.equal(status, 429);
    // Each answer has 120 tokens: the fifth question begins with 20 left.
    assert.equal(model.requests.length - asked, 5);
    assert.equal((await owner.play(1)).body.code, 'TOO_MANY_CALLS');
  });

  it('is no more than four at once', async (t) => {
    let running = 0;
    let most = 0;
    const slow = await startScriptedModel(async () => {
      most = Math.max(most, ++running);
      await sleep(200);
      running--;
      return { content: JSON.stringify(ACTION) };
    });
    process.env.OPENAI_BASE_URL = slow.baseUrl;
    t.after(() => {
      process.env.OPENAI_BASE_URL = model.baseUrl;
      return slow.close();
    });
    const client = await serve(t, { guard: { tokens: ['secret'] } });
    const answers = await Promise.all(strangers.map((address) => client(address, 'secret').play(2)));
    const codes = answers.map(({ status }) => status);
    assert.ok(most <= 4 && codes.includes(429) && codes.includes(200), `${most} at once: ${codes}`);
  });

  it('is counted in real mode too, over every transport', async (t) => {
    Object.assign(process.env, { LLMSERVE_MODE: 'real', LLMSERVE_REAL_MODEL: 'scripted' });
    t.after(() => {
      delete process.env.LLMSERVE_MODE;
    });
    const closed = (await serve(t, {}))('203.0.113.1');
    assert.equal((await closed.post('reset', {})).body.code, 'CALLS_OFF');
    await using session = await connect(closed.url);
    await assert.rejects(async () => session.reset(), /SERVEGYM_TOKEN/);
    const socket = new WebSocket(`${closed.url.replace(/^http/, 'ws')}/ws`);
    await once(socket, 'open');
    socket.send('{"type":"vector_reset","data":{"count":2}}');
    const [{ data }] = await once(socket, 'message');
    socket.close();
    assert.match(data, /SERVEGYM_TOKEN/);
    assert.equal(model.requests.length, asked);

    const open = (await serve(t, { outside: { calls: 1 } }))('203.0.113.1');
    const { body } = await open.post('reset', { task_id: 'static_workload' });
    const step = await open.post('step', { session_id: body.session_id, action: ACTION });
    assert.deepEqual([step.status, step.body.code], [429, 'TOO_MANY_CALLS']);
    assert.equal(model.requests.length - asked, 1);
  });
});
