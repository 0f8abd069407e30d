import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { createClient } from './client.ts';
import type { ApiError } from './transport.ts';

let stop: (() => void) | undefined;
afterEach(() => stop?.());

/** A server that answers each request with what `answer` says, and a client that finds it under a prefix. */
async function clientOf(
  answer: (
    path: string,
    body: unknown,
  ) => readonly [status: number, body: unknown, headers?: Record<string, string>],
  see: (request: IncomingMessage) => void = () => {},
) {
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    see(request);
    let text = '';
    for await (const chunk of request) text += chunk;
    const [status, body, headers] = answer(
      `${request.method} ${request.url}`,
      text === '' ? undefined : JSON.parse(text),
    );
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  stop = () => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = server.address() as AddressInfo;
  return createClient(new URL(`http://127.0.0.1:${port}/under/here/`));
}

const observation = { queue_depth: 3 };

describe('the client', () => {
  it('asks relative to its root and names the session', async () => {
    const asked: unknown[] = [];
    const client = await clientOf((path, body) => {
      asked.push([path, body]);
      return [200, { session_id: 's1', observation, reward: 0.5, done: false, metadata: { phase: 'quiet' } }];
    });
    const { sessionId } = await client.reset({ task_id: 'bursty_workload', seed: 7 });
    const step = await client.step(sessionId, { batch_cap: 8 });
    assert.deepEqual(asked, [
      ['POST /under/here/reset', { task_id: 'bursty_workload', seed: 7 }],
      ['POST /under/here/step', { session_id: 's1', action: { batch_cap: 8 } }],
    ]);
    assert.deepEqual(step, {
      action: { batch_cap: 8 },
      observation,
      reward: 0.5,
      done: false,
      metadata: { phase: 'quiet' },
    });
  });

  it('carries the token that was entered', async () => {
    const headers: (string | undefined)[] = [];
    const client = await clientOf(
      () => [200, { status: 'healthy' }],
      (request) => headers.push(request.headers.authorization),
    );
    await client.health();
    client.authorize('open-sesame');
    await client.health();
    assert.deepEqual(headers, [undefined, 'Bearer open-sesame']);
  });

  it('opens an episode with its reset, or from a later window on without', async () => {
    const window = (action: number) => ({ action: { action }, observation, reward: 1, done: false });
    const client = await clientOf((_, body) => [
      200,
      {
        session_id: 's2',
        verified: true,
        environment: { id: 'a', version: '2' },
        windows: [{ observation, reward: null, done: false }, window(1), window(2)].slice(
          (body as { windows_from: number }).windows_from,
        ),
      },
    ]);
    const file = { format: 'openenv-episode/1', reset: { seed: 1 }, actions: [] };
    const whole = await client.openEpisode(file, 0);
    assert.deepEqual([whole.start?.observation, whole.steps.length, whole.version], [observation, 2, '2']);
    const rest = await client.openEpisode(file, 2);
    assert.deepEqual([rest.start, rest.steps.map(({ action }) => action)], [undefined, [{ action: 2 }]]);
  });

  it('tells a session that the server does not know from one at its start', async () => {
    for (const status of [404, 410]) {
      assert.equal(await (await clientOf(() => [status, { detail: 'Unknown' }])).stepCount('s'), undefined);
      stop?.();
    }
    assert.equal(await (await clientOf(() => [200, { step_count: 0 }])).stepCount('s'), 0);
  });

  it('starts an episode in a new session when the server has dropped the old one', async () => {
    const client = await clientOf((_, body) =>
      (body as { session_id?: string }).session_id === undefined
        ? [200, { session_id: 'new', observation, reward: null, done: false }]
        : [410, { detail: 'The session is not kept here', code: 'SESSION_DELETED' }],
    );
    assert.equal((await client.reset({ seed: 0 }, 'old')).sessionId, 'new');
  });

  it('plays a policy under its own name, however it is spelled', async () => {
    const client = await clientOf((path, body) => [
      200,
      { steps: [{ action: { path, body }, observation, reward: 1, done: true }], done: true },
    ]);
    const [step] = await client.policySteps('my policy/1', 's1', 4);
    assert.deepEqual(step.action, {
      path: 'POST /under/here/policies/my%20policy%2F1/step',
      body: { session_id: 's1', steps: 4 },
    });
    assert.equal(step.done, true);
  });

  it('finds tasks bare or wrapped, and none where the server has no such route', async () => {
    const tasks = [{ id: 1, name: 'One' }];
    assert.deepEqual(await (await clientOf(() => [200, tasks])).tasks(), tasks);
    stop?.();
    assert.deepEqual(await (await clientOf(() => [200, { tasks }])).tasks(), tasks);
    stop?.();
    assert.deepEqual(await (await clientOf(() => [404, { detail: 'Not Found' }])).tasks(), []);
  });

  for (const [what, status, body, message] of [
    ['a sentence', 409, { detail: 'The episode is over.' }, /^The episode is over\.$/],
    [
      'validation errors',
      422,
      { detail: [{ loc: ['body', 'seed'], msg: 'must not be negative' }] },
      /^seed: must not be negative$/,
    ],
    ['an error object', 503, { error: { message: 'All sessions are taken.' } }, /^All sessions are taken\.$/],
    ['a page of HTML', 502, '<html>Bad Gateway</html>', /502/],
  ] as const) {
    it(`tells what the server objects to when it answers with ${what}`, async () => {
      const client = await clientOf(() => [status, body]);
      await assert.rejects(client.metadata(), (error: ApiError) => {
        assert.equal(error.kind, 'refused');
        assert.equal(error.status, status);
        assert.match(error.message, message);
        return true;
      });
    });
  }

  it('knows the code of a refusal and when to ask again', async () => {
    for (const [code, isTemporary] of [
      ['WORK_QUEUE_FULL', true],
      ['WORK_TIMEOUT', false],
    ] as const) {
      const client = await clientOf(() => [503, { detail: 'Busy.', code }, { 'retry-after': '2' }]);
      await assert.rejects(client.metadata(), (error: ApiError) => {
        assert.deepEqual([error.code, error.retryAfterMs, error.isTemporary], [code, 2000, isTemporary]);
        return true;
      });
      stop?.();
    }
  });

  it('says so when nobody answers', async () => {
    const client = await clientOf(() => [200, {}]);
    stop?.();
    await assert.rejects(client.metadata(), (error: ApiError) => error.kind === 'unreachable');
  });

  it('does not take just any JSON for an observation', async () => {
    const client = await clientOf(() => [200, { hello: 'world' }]);
    await assert.rejects(client.reset({ seed: 0 }), (error: ApiError) => error.kind === 'unreadable');
    await assert.rejects(client.step('s', {}), (error: ApiError) => error.kind === 'unreadable');
    await assert.rejects(client.policySteps('p', 's', 1), (error: ApiError) => error.kind === 'unreadable');
    await assert.rejects(client.grade('s'), (error: ApiError) => error.kind === 'unreadable');
  });
});
