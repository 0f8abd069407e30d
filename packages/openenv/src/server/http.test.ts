import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { getJson, openRawSocket, postJson, startServer } from '../fixtures/start-server.ts';
import { MAX_CALLERS } from './environment-routes.ts';
import { RecentMap } from './guard.ts';

test('a session is played by its id, and two sessions do not mix', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const first = await postJson(`${url}/reset`, { seed: 1 });
  const second = await postJson(`${url}/reset`, { seed: 5 });
  assert.equal(first.status, 200);
  assert.notEqual(first.body.session_id, second.body.session_id);

  const step = await postJson(`${url}/step`, { session_id: first.body.session_id, action: { amount: 4 } });
  assert.deepEqual(step.body, {
    observation: { total: 5, note: '' },
    reward: 0.4,
    done: false,
    session_id: first.body.session_id,
    metadata: { added: 4 },
  });
  const other = await getJson(`${url}/state?session_id=${second.body.session_id}`);
  assert.equal(other.body.total, 5);
  assert.equal(other.body.step_count, 0);
});

test('fields that a definition adds stand in the HTTP answers and in the OpenAPI document', async (t) => {
  const { url } = await startServer(t, {
    ...counterEnvironment,
    httpFields: {
      reset: { schema: z.object({ episode_length: z.int() }), of: () => ({ episode_length: 7 }) },
      step: { schema: z.object({ info: z.object({}) }), of: ({ metadata = {} }) => ({ info: metadata }) },
    },
  });
  const reset = await postJson(`${url}/reset`, { seed: 1 });
  assert.equal(reset.body.episode_length, 7);
  assert.equal('info' in reset.body, false);
  const step = await postJson(`${url}/step`, { action: { amount: 4 } });
  assert.deepEqual(step.body.info, { added: 4 });
  assert.deepEqual(step.body.observation, { total: 5, note: '' });
  const { body } = await getJson(`${url}/openapi.json`);
  const schemaOf = (path: string) => body.paths[path].post.responses[200].content['application/json'].schema;
  assert.ok(schemaOf('/reset').required.includes('episode_length'));
  assert.equal(schemaOf('/step').properties.info.type, 'object');
});

test('a client that sends no session_id plays the session that it reset last', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const mine = { 'user-agent': 'mine' };
  const yours = { 'user-agent': 'yours' };
  await postJson(`${url}/reset`, { seed: 1 }, mine);
  await postJson(`${url}/reset`, { seed: 2 }, yours);
  await postJson(`${url}/reset`, { seed: 3 }, mine);
  await postJson(`${url}/step`, { action: { amount: 1 } }, mine);
  assert.equal((await getJson(`${url}/state`, mine)).body.total, 4);
  assert.equal((await getJson(`${url}/state`, yours)).body.total, 2);
});

test('callers with different tokens are different callers, whatever their address', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  await postJson(`${url}/reset`, { seed: 1 }, { authorization: 'Bearer a' });
  const stranger = await getJson(`${url}/state`, { authorization: 'Bearer b' });
  assert.deepEqual(stranger.body, { episode_id: null, step_count: 0 });
});

test('a step without an id never acts on the session of another client with the same token', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    trustedProxies: 1,
    guard: { tokens: ['shared'] },
  });
  const authorization = 'Bearer shared';
  const from = (address: string, agent = 'python') => ({
    ...{ authorization, 'x-forwarded-for': address, 'user-agent': agent },
  });
  await postJson(`${url}/reset`, { seed: 1 }, from('203.0.113.1'));
  for (const other of [from('203.0.113.2'), from('203.0.113.1', 'curl')]) {
    const { status, body } = await postJson(`${url}/step`, { action: { amount: 1 } }, other);
    assert.deepEqual([status, body.code], [409, 'NOT_RESET']);
  }
  const own = await postJson(`${url}/step`, { action: { amount: 1 } }, from('203.0.113.1'));
  assert.deepEqual([own.status, own.body.observation.total], [200, 2]);
});

test('a client without an id keeps its session while its IPv6 address changes', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { trustedProxies: 1 });
  await postJson(`${url}/reset`, { seed: 1 }, { 'x-forwarded-for': '2001:db8::1' });
  const later = await postJson(
    `${url}/step`,
    { action: { amount: 1 } },
    { 'x-forwarded-for': '2001:db8::2' },
  );
  assert.equal(later.status, 200);
});

test('x-forwarded-for tells callers apart only behind a trusted proxy', async (t) => {
  const trusting = await startServer(t, counterEnvironment, { trustedProxies: 1 });
  const wary = await startServer(t, counterEnvironment);
  for (const { url } of [trusting, wary]) {
    await postJson(`${url}/reset`, { seed: 1 }, { 'x-forwarded-for': '203.0.113.1' });
  }
  const asAnother = { 'x-forwarded-for': '203.0.113.2' };
  assert.equal((await getJson(`${trusting.url}/state`, asAnother)).body.episode_id, null);
  assert.notEqual((await getJson(`${wary.url}/state`, asAnother)).body.episode_id, null);
});

test('a reset with a session_id starts that session again', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const { body } = await postJson(`${url}/reset`, { seed: 1, episode_id: 'one' });
  await postJson(`${url}/step`, { action: { amount: 1 } });
  const again = await postJson(`${url}/reset`, { seed: 2, episode_id: 'two', session_id: body.session_id });
  assert.equal(again.body.session_id, body.session_id);
  assert.equal(server.sessions.size, 1);
  const state = await getJson(`${url}/state`);
  assert.deepEqual(state.body, {
    episode_id: 'two',
    step_count: 0,
    total: 2,
    target: 20,
    seed: 2,
    done: false,
  });
});

test('reset takes an empty body and null options, and refuses options that there are not', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  assert.equal((await postJson(`${url}/reset`)).status, 200);
  assert.equal((await postJson(`${url}/reset`, 'null')).status, 200);
  assert.equal((await postJson(`${url}/reset`, { seed: null, target: null, colour: null })).status, 200);
  const { status, body } = await postJson(`${url}/reset`, { target: 5, task: 'easy' });
  const known = 'seed, episode_id, target, task_id, split, index';
  assert.deepEqual(
    [status, body.detail],
    [
      422,
      [
        {
          type: 'extra_forbidden',
          loc: ['body', 'task'],
          msg: `Extra inputs are not permitted: a reset takes ${known}`,
          input: 'easy',
        },
      ],
    ],
  );
  const resetOptions = z.looseObject({ colour: z.string() });
  const loose = await startServer(t, { ...counterEnvironment, resetOptions });
  assert.equal((await postJson(`${loose.url}/reset`, { colour: 'red', task: 'easy' })).status, 200);
});

test('without a seed the server draws one and says which in its record', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const { body } = await postJson(`${url}/reset`, {});
  const record = server.sessions.find(body.session_id)?.record;
  assert.ok(Number.isSafeInteger(record?.reset.seed));
  const { body: state } = await getJson(`${url}/state`);
  assert.equal(state.seed, record?.reset.seed);
});

test('invalid reset options are told as pydantic tells them, with their place in the body', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const cases = [
    [{ seed: -1 }, 'seed', 'greater_than_equal'],
    [{ seed: 1.5 }, 'seed', 'int_from_float'],
    [{ seed: '7' }, 'seed', 'int_type'],
    [{ seed: 2 ** 53 }, 'seed', 'less_than_equal'],
    [{ episode_id: 'e'.repeat(256) }, 'episode_id', 'string_too_long'],
    [{ target: 0 }, 'target', 'greater_than_equal'],
    [{ task_id: 'nope' }, 'task_id', 'literal_error'],
  ] as const;
  for (const [body, field, type] of cases) {
    const answer = await postJson(`${url}/reset`, body);
    assert.equal(answer.status, 422, JSON.stringify(body));
    const [issue] = answer.body.detail as { loc: unknown; type: string }[];
    assert.deepEqual(issue?.loc, ['body', field]);
    assert.equal(issue?.type, type);
  }
  assert.equal(server.sessions.size, 0, 'a refused reset leaves no session behind');
});

test('an invalid action is refused with 422 and changes nothing', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  await postJson(`${url}/reset`, { seed: 0 });
  const answer = await postJson(`${url}/step`, { action: { amount: 99, colour: 'red', mode: 'triple' } });
  assert.equal(answer.status, 422);
  assert.deepEqual(answer.body.detail, [
    {
      type: 'less_than_equal',
      loc: ['amount'],
      msg: 'Input should be less than or equal to 10',
      input: 99,
      ctx: { le: 10 },
    },
    {
      type: 'literal_error',
      loc: ['mode'],
      msg: "Input should be 'plain' or 'double'",
      input: 'triple',
      ctx: { expected: "'plain' or 'double'" },
    },
    { type: 'extra_forbidden', loc: ['colour'], msg: 'Extra inputs are not permitted', input: 'red' },
  ]);
  assert.equal((await getJson(`${url}/state`)).body.step_count, 0);
});

test('an action may carry metadata, and integers may come as floats', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  await postJson(`${url}/reset`, { seed: 0 });
  const answer = await postJson(`${url}/step`, '{"action":{"amount":3.0,"metadata":{"who":"me"}}}');
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body.observation, { total: 3, note: '' });
  const refused = await postJson(`${url}/step`, { action: { amount: 3, metadata: 'text' } });
  assert.equal(refused.status, 422);
});

test('NaN, Infinity and numbers too large for a double are refused', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  await postJson(`${url}/reset`, { seed: 0 });
  for (const literal of ['NaN', 'Infinity', '-Infinity']) {
    const answer = await postJson(`${url}/step`, `{"action":{"amount":1,"weight":${literal}}}`);
    assert.equal(answer.status, 422);
    const [issue] = answer.body.detail as { type: string; ctx: { error: string } }[];
    assert.equal(issue?.type, 'json_invalid');
    assert.match(issue?.ctx.error ?? '', new RegExp(`^${literal} is not JSON`));
  }
  const huge = await postJson(`${url}/step`, '{"action":{"amount":1,"weight":1e999}}');
  const [issue] = huge.body.detail as { type: string }[];
  assert.equal(issue?.type, 'finite_number');
});

test('a body that is no JSON, or no object, or not said to be JSON, is refused with 422', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const typeOf = (answer: { status: number; body: Record<string, never> }) => {
    assert.equal(answer.status, 422);
    return (answer.body.detail as { type: string }[])[0]?.type;
  };
  assert.equal(typeOf(await postJson(`${url}/reset`, '{oops')), 'json_invalid');
  assert.equal(typeOf(await postJson(`${url}/reset`, '[1]')), 'dict_type');
  assert.equal(typeOf(await postJson(`${url}/step`)), 'missing');
  assert.equal(typeOf(await postJson(`${url}/step`, {})), 'missing');
  assert.equal(typeOf(await postJson(`${url}/step`, { action: 3 })), 'dict_type');
  assert.equal(
    typeOf(await postJson(`${url}/reset`, '{}', { 'content-type': 'text/plain' })),
    'model_attributes_type',
  );
});

test('a step without an episode, after its end, and on an unknown session each say what to do', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const early = await postJson(`${url}/step`, { action: { amount: 1 } });
  assert.equal(early.status, 409);
  assert.equal(early.body.code, 'NOT_RESET');

  await postJson(`${url}/reset`, { seed: 0, target: 1 });
  assert.equal((await postJson(`${url}/step`, { action: { amount: 1 } })).body.done, true);
  const late = await postJson(`${url}/step`, { action: { amount: 1 } });
  assert.equal(late.status, 409);
  assert.equal(late.body.code, 'EPISODE_OVER');

  const unknown = await postJson(`${url}/step`, { session_id: 'nope', action: { amount: 1 } });
  assert.equal(unknown.status, 404);
  assert.equal(unknown.body.code, 'UNKNOWN_SESSION');
});

test('what the environment throws becomes 400 when it is meant for the caller, else 500', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  await postJson(`${url}/reset`, { seed: 0 });
  const refused = await postJson(`${url}/step`, { action: { amount: 1, note: 'refuse' } });
  assert.deepEqual([refused.status, refused.body.code], [400, 'REFUSED']);
  const broken = await postJson(`${url}/step`, { action: { amount: 1, note: 'boom' } });
  assert.deepEqual([broken.status, broken.body.detail], [500, 'Internal Server Error: boom happened']);
  const unrewarding = await postJson(`${url}/step`, { action: { amount: 1, note: 'nan' } });
  assert.equal(unrewarding.status, 500);
  assert.equal((await getJson(`${url}/state`)).body.step_count, 0);
});

test('the grader grades the caller’s own episode, and replays the actions of a log', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  assert.equal((await postJson(`${url}/grader`)).body.code, 'NOT_RESET');
  const { body } = await postJson(`${url}/reset`, { seed: 2 });
  await postJson(`${url}/step`, { action: { amount: 8 } });
  const own = await postJson(`${url}/grader`, { session_id: body.session_id });
  assert.deepEqual(own.body.breakdown, { total: 10, target: 20 });
  assert.deepEqual(own.body.replayed, { seed: 2, target: 20 });

  const claims = { observation: { total: 1_000_000 }, reward: 99, done: true };
  const logs: [unknown, object][] = [
    [[{ action: { amount: 8 }, ...claims }], { seed: 2 }],
    [
      [
        { action: null, ...claims },
        { action: { amount: 8, metadata: {} }, ...claims },
      ],
      { seed: 2 },
    ],
    [[{ amount: 8 }], { seed: 2 }],
    [{ seed: 2, steps: [{ action: { amount: 8 }, ...claims }] }, {}],
    [{ reset: { seed: 2 }, actions: [{ amount: 8 }] }, {}],
  ];
  for (const [episode_log, rest] of logs) {
    const graded = await postJson(`${url}/grader`, { episode_log, ...rest });
    assert.deepEqual(graded.body, own.body, JSON.stringify(episode_log));
  }
});

test('the grader replays a log on the traffic of its session, as far as the request does not tell', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const grade = async (body: object) => (await postJson(`${url}/grader`, body)).body;
  const episode_log = [{ action: { amount: 3 } }, { amount: 4 }];
  assert.deepEqual(
    [(await grade({ episode_log })).code, (await grade({ task_id: 'long', episode_log })).code],
    ['SEED_REQUIRED', 'SEED_REQUIRED'],
    'nothing tells the seed',
  );

  const { session_id } = (await postJson(`${url}/reset`, { task_id: 'long', target: 50, episode_id: 'e' }))
    .body;
  for (const { action } of [{ action: { amount: 3 } }, { action: { amount: 4 } }]) {
    await postJson(`${url}/step`, { session_id, action });
  }
  const own = await grade({ session_id });
  const { seed } = own.replayed as { seed: number };
  assert.deepEqual(own.replayed, { task_id: 'long', target: 50, seed });
  const same = [
    { session_id, episode_log },
    { session_id, task_id: 'long', episode_log },
    { session_id, task_id: 'long', seed, target: 50, episode_log },
    { episode_log },
    { seed, episode_log },
    { task_id: 'long', episode_log: { steps: episode_log } },
    { episode_log: { reset: { task_id: 'long' }, actions: episode_log } },
    { session_id, seed: null, task_id: null, episode_log },
  ];
  for (const request of same) assert.deepEqual(await grade(request), own, JSON.stringify(request));

  const on = async (request: object) => (await grade({ ...request, episode_log })).replayed;
  assert.deepEqual(await on({ session_id, seed: 7 }), { task_id: 'long', target: 50, seed: 7 });
  assert.deepEqual(await on({ session_id, target: 60 }), { task_id: 'long', target: 60, seed });
  assert.deepEqual(
    await on({ task_id: 'long', seed: seed === 7 ? 8 : 7 }),
    { task_id: 'long', target: 20, seed: seed === 7 ? 8 : 7 },
    'another seed than that of the latest session, which nobody has named',
  );
  assert.deepEqual(
    (await grade({ session_id, task_id: 'short', episode_log })).code,
    'SEED_REQUIRED',
    'a log of another task is not of the session',
  );
  assert.deepEqual(await on({ session_id, split: 'train', index: 2 }), {
    task_id: 'long',
    target: 10,
    seed: 2,
  });
  assert.equal((await grade({ session_id: 'nobody', seed: 1, episode_log })).code, 'UNKNOWN_SESSION');
});

test('the grader refuses a forged or foreign log with its place, and grades an empty one', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const forged = await postJson(`${url}/grader`, {
    seed: 0,
    episode_log: [{ action: { amount: 1 } }, { action: { amount: 1000 } }],
  });
  assert.equal(forged.status, 422);
  assert.deepEqual((forged.body.detail as { loc: unknown }[])[0]?.loc, [
    'body',
    'episode_log',
    1,
    'action',
    'amount',
  ]);
  assert.equal((await postJson(`${url}/grader`, { episode_log: { nothing: 1 } })).status, 422);
  assert.equal((await postJson(`${url}/grader`, { task_id: 'nope', episode_log: [] })).status, 422);
  const empty = await postJson(`${url}/grader`, { task_id: 'short', seed: 0, episode_log: [] });
  assert.equal(empty.body.score, 0.05);
});

test('information routes tell what clients look for', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const health = await getJson(`${url}/health`);
  assert.equal(health.body.status, 'healthy');
  assert.equal(health.body.active_sessions, 0);
  assert.equal((await fetch(`${url}/health`, { method: 'HEAD' })).status, 200);
  const metadata = await getJson(`${url}/metadata`);
  assert.deepEqual(metadata.body, {
    name: 'Counter',
    description: 'Counts up to a target.',
    readme_content: null,
    version: '1',
    author: null,
    documentation_url: null,
  });
  const tasks = await getJson(`${url}/tasks`);
  assert.equal((tasks.body.tasks as unknown[]).length, 2);
});

test('/schema has the titles and the extra fields that consumers look for, and the true state', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const { body } = await getJson(`${url}/schema`);
  const { action, observation, state } = body as unknown as Record<
    string,
    {
      title: string;
      properties: Record<string, unknown>;
      required?: string[];
      additionalProperties?: boolean;
    }
  >;
  assert.equal(action?.title, 'CountAction');
  assert.ok(action?.properties.metadata);
  assert.deepEqual(action?.required, ['amount']);
  assert.equal(action?.additionalProperties, false);
  assert.equal(observation?.title, 'CountObservation');
  for (const field of ['done', 'reward', 'metadata', 'total'])
    assert.ok(observation?.properties[field], field);
  for (const field of ['episode_id', 'step_count', 'target']) assert.ok(state?.properties[field], field);
});

test('unknown paths are 404, wrong methods 405 with the allowed ones, long bodies 413', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxMessageBytes: 1000 });
  assert.deepEqual((await getJson(`${url}/nope`)).body, { detail: 'Not Found' });
  assert.equal((await getJson(`${url}/ws`)).status, 404);
  const wrong = await getJson(`${url}/step`);
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST']);
  const long = await postJson(`${url}/reset`, { padding: 'x'.repeat(2000) });
  assert.equal(long.status, 413);
  assert.match(long.body.detail, /1000 bytes/);
});

test('the documentation lists every route and asks nothing of other servers', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const { body } = await getJson(`${url}/openapi.json`);
  const page = await (await fetch(`${url}/docs`)).text();
  assert.equal((body.info as { version: string }).version, '1.0.0');
  for (const path of Object.keys(body.paths)) assert.ok(page.includes(`<code>${path}</code>`), path);
  assert.ok(!/(src|href)="(https?:)?\/\//.test(page), 'no absolute link');
});

test('in production there is no route to control the episode', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { mode: 'production' });
  assert.equal((await postJson(`${url}/reset`, {})).status, 404);
  assert.equal((await postJson(`${url}/step`, { action: { amount: 1 } })).status, 404);
  assert.equal((await getJson(`${url}/state`)).status, 404);
  const { body } = await getJson(`${url}/openapi.json`);
  assert.ok(!('/reset' in body.paths) && !('/step' in body.paths) && !('/state' in body.paths));
  assert.equal((await getJson(`${url}/health`)).status, 200);
});

test('routes that somebody mounts act on the caller’s session and appear in the documentation', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  server.addRoute(
    {
      method: 'post',
      path: '/policies/{name}/step',
      operationId: 'policy_step',
      tag: 'Policies',
      summary: 'Let a policy play a step',
      query: z.object({ session_id: z.string().optional() }),
      body: z.strictObject({ amount: z.int().max(5).default(2) }),
      answer: z.object({ name: z.string(), steps: z.int(), actions: z.int() }),
    },
    async (context, { parameters: { name }, query, body: { amount } }) => {
      const session = await server.requestSessions.of(context, query.session_id);
      if (!session) return context.json({ detail: 'no session' }, 409);
      await session.step({ amount, note: '', mode: 'plain', weight: 1 });
      return { name: name ?? '', steps: session.stepCount, actions: session.record?.actions.length ?? 0 };
    },
  );
  await postJson(`${url}/reset`, { seed: 0 });
  const played = await postJson(`${url}/policies/greedy/step`);
  assert.deepEqual(played.body, { name: 'greedy', steps: 1, actions: 1 });
  assert.equal((await getJson(`${url}/state`)).body.total, 2);
  assert.equal((await postJson(`${url}/policies/greedy/step?session_id=nope`)).status, 404);
  const refused = await postJson(`${url}/policies/greedy/step`, { amount: 6 });
  assert.equal(refused.status, 422);
  assert.deepEqual((refused.body.detail as { loc: unknown }[])[0]?.loc, ['body', 'amount']);
  const { body } = await getJson(`${url}/openapi.json`);
  const { post } = body.paths['/policies/{name}/step'];
  assert.deepEqual(
    (post.parameters as { name: string; in: string }[]).map(({ name, in: place }) => [name, place]),
    [
      ['name', 'path'],
      ['session_id', 'query'],
    ],
  );
  assert.equal(post.requestBody.required, false);
  assert.equal(post.requestBody.content['application/json'].schema.anyOf[0].properties.amount.maximum, 5);
  assert.deepEqual(post.responses[200].content['application/json'].schema.required, [
    'name',
    'steps',
    'actions',
  ]);
});

test('options that make no sense are refused when the server is made', async () => {
  const { createServer } = await import('./create-server.ts');
  assert.throws(
    () => createServer(counterEnvironment, { maxSessions: 0 }),
    /`maxSessions`.*got `0` \(number\)/,
  );
  assert.throws(() => createServer(counterEnvironment, { mode: 'play' as never }), /'play'/);
});

test('the caller that was longest away is forgotten first, beyond 10,000 callers', () => {
  const latest = new RecentMap<string>(MAX_CALLERS);
  for (let i = 0; i < 10_000; i++) latest.set(`caller ${i}`, `session ${i}`);
  assert.equal(latest.get('caller 0'), 'session 0');
  latest.set('caller 1', 'another session');
  latest.set('new caller', 'new session');
  assert.equal(latest.get('caller 2'), undefined);
  assert.equal(latest.get('caller 0'), 'session 0');
  assert.equal(latest.get('caller 1'), 'another session');
  latest.set('newer caller', 'newer session');
  assert.equal(latest.get('caller 3'), undefined);
  assert.equal(latest.get('new caller'), 'new session');
});

test('the Task API lists splits and tasks, and a reset plays the task that is asked for', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  assert.deepEqual((await getJson(`${url}/list_environments`)).body, ['counter']);
  assert.deepEqual((await getJson(`${url}/Counter/splits`)).body, [
    { name: 'train', type: 'train' },
    { name: 'exam', type: 'test' },
  ]);
  assert.deepEqual((await postJson(`${url}/counter/num_tasks`, { split: 'train' })).body, { num_tasks: 5 });
  const { body } = await postJson(`${url}/counter/tasks`, { split: 'train' });
  assert.equal(body.env_name, 'counter');
  assert.deepEqual(body.tasks[3], { seed: 3, target: 10 });
  const one = await postJson(`${url}/counter/task`, { split: 'train', index: 3 });
  assert.deepEqual(one.body, { task: body.tasks[3] });

  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { split: 'train', index: 3, episode_id: 'e' } });
  const { data } = await socket.ask({ type: 'state' });
  assert.deepEqual([data.seed, data.target, data.episode_id], [3, 10, 'e']);
  await socket.ask({ type: 'reset', data: { split: 'train', index: 4, seed: 4, target: 10 } });
  assert.equal(
    (await socket.ask({ type: 'state' })).data.seed,
    4,
    'what says the same twice is no contradiction',
  );
  const { data: error } = await socket.ask({ type: 'reset', data: { split: 'train', index: 3, seed: 8 } });
  assert.match(error.message, /has seed 3, but seed 8 was sent beside it/);
  assert.equal((await socket.ask({ type: 'state' })).data.seed, 4, 'nothing was reset');
  await socket.close();
});

test('a reset whose options contradict each other is refused, and says which', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const refused = async (options: object) => {
    const { status, body } = await postJson(`${url}/reset`, options);
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal(body.code, 'CONFLICTING_OPTIONS');
    return body.detail as string;
  };
  assert.match(await refused({ split: 'train', index: 1, seed: 5 }), /seed 1, but seed 5 .*leave out seed/);
  assert.match(await refused({ split: 'train', index: 0, target: 11 }), /target 10, but target 11/);
  assert.match(await refused({ split: 'exam', task_id: 'short' }), /task_id "long", but task_id "short"/);
  const alone = await postJson(`${url}/reset`, { index: 4 });
  assert.equal(alone.status, 422);
  assert.deepEqual(
    (alone.body.detail as { type: string; loc: unknown }[]).map(({ type, loc }) => [type, loc]),
    [['missing', ['body', 'split']]],
  );
  for (const options of [
    { split: null, index: null, seed: 5 },
    { split: 'train', index: null, seed: null },
    { split: 'train', index: 2, seed: 2.0, target: 10, task_id: 'short' },
    { split: 'exam', seed: 9, task_id: 'long', target: 40 },
  ]) {
    assert.equal((await postJson(`${url}/reset`, options)).status, 200, JSON.stringify(options));
  }
  const malformed = await postJson(`${url}/reset`, { split: 'train', index: 1, seed: 'five' });
  assert.equal(malformed.status, 422);
});

test('ranges are those of Python', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const seeds = async (range: object) => {
    const { body } = await postJson(`${url}/counter/task_range`, { split: 'train', ...range });
    return body.tasks.map((task: { seed: number }) => task.seed);
  };
  assert.deepEqual(await seeds({}), [0, 1, 2, 3, 4]);
  assert.deepEqual(await seeds({ start: 1, stop: 3 }), [1, 2]);
  assert.deepEqual(await seeds({ start: -2, stop: null }), [3, 4]);
  assert.deepEqual(await seeds({ start: 3, stop: 1 }), []);
  assert.deepEqual(await seeds({ start: -99, stop: 99 }), [0, 1, 2, 3, 4]);
});

test('unknown names are 404, indexes outside are 400 and 422, missing splits are 501', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const foreign = await postJson(`${url}/chess/tasks`, { split: 'train' });
  assert.deepEqual([foreign.status, foreign.body.detail], [404, "unknown environment 'chess'"]);
  const unknown = await postJson(`${url}/counter/tasks`, { split: 'nope' });
  assert.deepEqual(
    [unknown.status, unknown.body.detail],
    [404, "unknown split 'nope'; there are train, exam"],
  );
  for (const index of [5, -1]) {
    const outside = await postJson(`${url}/counter/task`, { split: 'train', index });
    assert.deepEqual([outside.status, outside.body.detail], [400, 'Invalid task index']);
  }
  assert.equal((await postJson(`${url}/counter/task`, { split: 'train' })).status, 422);
  const beyond = await postJson(`${url}/reset`, { split: 'train', index: 5 });
  assert.deepEqual([beyond.status, beyond.body.code], [404, 'UNKNOWN_TASK']);
  for (const options of [{ split: 'nope' }, { split: 'train', index: -1 }, { split: 'train', index: 0.5 }]) {
    assert.equal((await postJson(`${url}/reset`, options)).status, 422, JSON.stringify(options));
  }
  const { splits, ...without } = counterEnvironment;
  const bare = await startServer(t, without);
  const refused = await getJson(`${bare.url}/counter/splits`);
  assert.deepEqual(
    [refused.status, refused.body.detail],
    [501, 'list_splits is not supported for this environment'],
  );
  assert.equal((await postJson(`${bare.url}/reset`, { split: 'nope' })).status, 422, 'an unknown option');
});
