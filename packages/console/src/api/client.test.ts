import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import type { ApiError } from './api-error.ts';
import { createClient } from './client.ts';

let stop: (() => void) | undefined;
afterEach(() => stop?.());

/** A server that answers each request with what `answer` says, and a client that finds it under a prefix. */
async function clientOf(answer: (path: string, body: unknown) => [status: number, body: unknown]) {
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const [status, body] = answer(
      `${request.method} ${request.url}`,
      text === '' ? undefined : JSON.parse(text),
    );
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return createClient(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/under/here/`));
}

const observation = { queue_depth: 3 };

describe('the client', () => {
  it('asks relative to its root and names the session', async () => {
    const asked: unknown[] = [];
    const client = await clientOf((path, body) => {
      asked.push([path, body]);
      return [200, { session_id: 's1', observation, reward: 0.5, done: false, metadata: { phase: 'quiet' } }];
    });
    const { sessionId } = await client.reset('bursty_workload', 7);
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

  it('starts an episode in a new session when the server has dropped the old one', async () => {
    const client = await clientOf((_, body) =>
      (body as { session_id?: string }).session_id === undefined
        ? [200, { session_id: 'new', observation, reward: null, done: false }]
        : [404, { detail: 'Unknown session' }],
    );
    assert.equal((await client.reset(undefined, 0, 'old')).sessionId, 'new');
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

  it('says so when nobody answers', async () => {
    const client = await clientOf(() => [200, {}]);
    stop?.();
    await assert.rejects(client.metadata(), (error: ApiError) => error.kind === 'unreachable');
  });

  it('does not take just any JSON for an observation', async () => {
    const client = await clientOf(() => [200, { hello: 'world' }]);
    await assert.rejects(client.reset('x', 0), (error: ApiError) => error.kind === 'unreadable');
    await assert.rejects(client.step('s', {}), (error: ApiError) => error.kind === 'unreadable');
    await assert.rejects(client.policySteps('p', 's', 1), (error: ApiError) => error.kind === 'unreadable');
    await assert.rejects(client.grade('s'), (error: ApiError) => error.kind === 'unreadable');
  });
});
