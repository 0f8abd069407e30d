import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AGENTS } from '@servegym/agents';
import { llmserve, type ServeAction } from '@servegym/environments';
import { createServer } from '@servegym/openenv';
import { openEnvironment, policiesOf, schemaPolicies } from './open-environment.ts';
import { mountPolicyRoutes } from './policy-routes.ts';

const { definition: guessEnvironment } = await openEnvironment(
  fileURLToPath(new URL('../../../openenv/examples/guess/environment.ts', import.meta.url)),
);
const server = createServer(llmserve.definition());
mountPolicyRoutes(server, policiesOf(llmserve));
after(() => server.close());

async function get(path: string) {
  const answer = await server.app.request(path);
  return { status: answer.status, body: await answer.json() };
}

async function post(path: string, body: unknown) {
  const answer = await server.app.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

async function reset(options: object = { task_id: 'bursty_workload', seed: 3 }) {
  return (await post('/reset', options)).body;
}

describe('GET /policies', () => {
  it('lists what each policy is called and does', async () => {
    const { body } = await get('/policies');
    assert.deepEqual(body, AGENTS.llmserve.policies);
    assert.ok(body.some(({ name }: { name: string }) => name === 'heuristic'));
  });
});

describe('POST /policies/{name}/step', () => {
  let session_id: string;
  beforeEach(async () => {
    ({ session_id } = await reset());
  });

  it('plays one window by default, and tells the action with its outcome', async () => {
    const { status, body } = await post('/policies/default/step', { session_id });
    assert.equal(status, 200);
    assert.equal(body.done, false);
    assert.equal(body.steps.length, 1);
    const [{ action, observation, reward, done }] = body.steps;
    assert.deepEqual(action, llmserve.tasks.shipped.bursty_workload.defaultAction);
    assert.equal(observation.step_index, 1);
    assert.equal(typeof reward, 'number');
    assert.equal(done, false);
  });

  it('does what the same policy does in process', async () => {
    const { body } = await post('/policies/heuristic/step', { session_id, steps: 20 });

    const environment = llmserve.definition().create();
    const policy = AGENTS.llmserve.createPolicy('heuristic');
    let { observation, reward } = await environment.reset({ task_id: 'bursty_workload', seed: 3 });
    policy.reset({ taskId: 'bursty_workload', seed: 3 });
    let previousAction: ServeAction = llmserve.tasks.shipped.bursty_workload.defaultAction;
    for (const [stepIndex, step] of body.steps.entries()) {
      const action = policy.act({ observation, reward, previousAction, stepIndex });
      const result = await environment.step(action);
      assert.deepEqual(step.action, action);
      assert.deepEqual(step.observation, JSON.parse(JSON.stringify(result.observation)));
      assert.equal(step.reward, result.reward);
      ({ observation, reward } = result);
      previousAction = action;
    }
  });

  it('tells the policy under which traffic the session is played', async (t) => {
    const told: unknown[] = [];
    const listening = createServer(llmserve.definition());
    t.after(() => listening.close());
    mountPolicyRoutes(listening, {
      ...policiesOf(llmserve),
      create: () => ({
        name: 'default',
        reset: (episode) => void told.push(episode),
        act: ({ previousAction }) => previousAction,
      }),
    });
    const send = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await listening.app.request(path, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      return answer.json();
    };
    const options = { task_id: 'bursty_workload', seed: 3, shift: 'rate_1.5', traffic: 'azure-code-2023' };
    const { session_id } = await send('/reset', { ...options, episode_id: 'mine' });
    await send('/policies/default/step', { session_id });
    const { task_id: taskId, seed, ...resetOptions } = options;
    assert.deepEqual(told, [{ taskId, seed, resetOptions }]);
  });

  it('plays the same windows one by one as at once', async () => {
    const { body: atOnce } = await post('/policies/random/step', { session_id, steps: 8 });
    assert.equal(atOnce.steps.length, 8);
    const other = await reset();
    for (const step of atOnce.steps) {
      const { body } = await post('/policies/random/step', { session_id: other.session_id });
      assert.deepEqual(body.steps, [step]);
    }
  });

  it('goes on from where a person left the knobs', async () => {
    const action = { ...llmserve.tasks.shipped.bursty_workload.defaultAction, batch_cap: 200 };
    await post('/step', { session_id, action });
    const { body } = await post('/policies/heuristic/step', { session_id });
    assert.ok(Math.abs(body.steps[0].action.batch_cap - 200) <= 32, 'the rules move the cap by at most 32');
    assert.equal(body.steps[0].observation.step_index, 2);
  });

  it('starts afresh when the session is reset', async () => {
    const before = await post('/policies/random/step', { session_id, steps: 5 });
    await reset({ session_id, task_id: 'bursty_workload', seed: 3 });
    const again = await post('/policies/random/step', { session_id, steps: 5 });
    assert.deepEqual(again.body, before.body);
  });

  it('stops at the end of the episode, and after it says that the episode is over', async () => {
    let body: { steps: { done: boolean }[]; done: boolean };
    do {
      ({ body } = await post('/policies/default/step', { session_id, steps: 200 }));
    } while (!body.done);
    assert.equal(
      body.steps.findIndex(({ done }) => done),
      body.steps.length - 1,
    );

    const answer = await post('/policies/default/step', { session_id });
    assert.equal(answer.status, 409);
    assert.equal(answer.body.code, 'EPISODE_OVER');
  });

  it("plays the caller's latest session when none is named", async () => {
    const { body } = await post('/policies/default/step', {});
    assert.equal(body.steps[0].observation.step_index, 1);
    const { body: state } = await get(`/state?session_id=${session_id}`);
    assert.equal(state.step_count, 1);
  });

  it('answers 404 for a policy or a session that it does not know', async () => {
    const policy = await post('/policies/oracle-of-delphi/step', { session_id });
    assert.equal(policy.status, 404);
    assert.equal(policy.body.code, 'UNKNOWN_POLICY');
    assert.match(policy.body.detail, /heuristic/);
    const session = await post('/policies/default/step', { session_id: 'nobody' });
    assert.equal(session.status, 404);
    assert.equal(session.body.code, 'UNKNOWN_SESSION');
  });

  it('answers 422 for a body that it cannot read, and plays nothing', async () => {
    for (const body of [
      { steps: 0 },
      { steps: 201 },
      { steps: 1.5 },
      { steps: '3' },
      { windows: 3 },
      [],
      'x',
    ]) {
      const answer = await post(
        '/policies/default/step',
        Array.isArray(body) || typeof body === 'string' ? body : { session_id, ...body },
      );
      assert.equal(answer.status, 422, JSON.stringify(body));
      assert.ok(Array.isArray(answer.body.detail));
    }
    const { body: state } = await get(`/state?session_id=${session_id}`);
    assert.equal(state.step_count, 0);
  });

  it('is in the API description', async () => {
    const { body } = await get('/openapi.json');
    assert.ok(body.paths['/policies'].get);
    assert.ok(body.paths['/policies/{name}/step'].post);
  });
});

describe('the API description', () => {
  for (const path of ['/reset', '/step', '/grader', '/policies/{name}/step']) {
    it(`says what each field of a request to ${path} means`, async () => {
      const { body } = await get('/openapi.json');
      const { schema } = body.paths[path].post.requestBody.content['application/json'];
      const { properties } = schema.properties === undefined ? schema.anyOf[0] : schema;
      assert.ok(Object.keys(properties).length > 0);
      for (const [name, field] of Object.entries<{ description?: string }>(properties)) {
        assert.ok(field.description, name);
      }
    });
  }
});

describe('a policy that comes back after its server was replaced', () => {
  for (const name of ['random', 'mpc']) {
    it(`goes on as if it had never been away: ${name}`, async () => {
      const { body: whole } = await post(`/policies/${name}/step`, {
        session_id: (await reset()).session_id,
        steps: 8,
      });
      const heir = createServer(llmserve.definition());
      mountPolicyRoutes(heir, policiesOf(llmserve));
      const session = heir.sessions.open();
      await session.reset({ task_id: 'bursty_workload', seed: 3 });
      for (const { action } of whole.steps.slice(0, 5)) await session.step(action);
      const answer = await heir.app.request(`/policies/${name}/step`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ session_id: session.id, steps: 3 }),
      });
      assert.deepEqual((await answer.json()).steps, whole.steps.slice(5));
      await heir.close();
    });
  }
});

describe('a policy that comes back after a person has played', () => {
  it('knows the windows that it has missed', async () => {
    const byHand = [7, 400, 30].map((batch_cap) => ({
      ...llmserve.tasks.shipped.bursty_workload.defaultAction,
      batch_cap,
    }));
    const steps = async (session_id: string, count: number) =>
      (await post('/policies/mpc/step', { session_id, steps: count })).body.steps;
    const back = (await reset()).session_id;
    const first = await steps(back, 2);
    for (const action of byHand) await post('/step', { session_id: back, action });

    const late = (await reset()).session_id;
    for (const action of [first[0].action, first[1].action, ...byHand])
      await post('/step', { session_id: late, action });
    assert.deepEqual(await steps(back, 2), await steps(late, 2));
  });
});

describe('the policies of an environment of which only the schema is known', () => {
  it('draw valid actions, the same for the same seed', async () => {
    const guess = createServer(guessEnvironment);
    mountPolicyRoutes(guess, schemaPolicies(guessEnvironment));
    const play = async () => {
      const session = guess.sessions.open();
      await session.reset({ seed: 7 });
      const answer = await guess.app.request('/policies/random/step', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ session_id: session.id, steps: 5 }),
      });
      return (await answer.json()).steps;
    };
    const steps = await play();
    assert.equal(steps.length, 5);
    assert.deepEqual(await play(), steps);
    assert.ok(new Set(steps.map((step: { action: { number: number } }) => step.action.number)).size > 1);
    await guess.close();
  });
});
