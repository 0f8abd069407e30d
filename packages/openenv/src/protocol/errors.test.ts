import assert from 'node:assert/strict';
import { describe, it, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket, postJson, startServer } from '../fixtures/start-server.ts';
import { EnvironmentError } from './definition.ts';
import { ERROR_CATALOGUE, errorAnswer, openEnvError } from './errors.ts';
import { readInput } from './schemas.ts';

const ISSUE = { type: 'missing', loc: ['amount'], msg: 'Field required', input: {} };
const FIELDS = {
  ...{ problem: 'a problem', type: 'other', id: 'abc', damage: 'step 1 is missing.', bytes: 7 },
  ...{ active_sessions: 1, max_sessions: 2, factory_name: 'counter' },
};

/** An error of each kind of the catalogue. */
function errorOf(code: keyof typeof ERROR_CATALOGUE): Error {
  if (code === 'VALIDATION_ERROR') return openEnvError('VALIDATION_ERROR', { issues: [ISSUE] });
  if (code === 'EXECUTION_ERROR') return Object.assign(new Error('broken'), { code: 'ENOENT' });
  if ('sentence' in ERROR_CATALOGUE[code]) return openEnvError(code as 'STORE_ERROR', FIELDS);
  return new EnvironmentError(code, `${code} happened`);
}

/** A server whose environment throws the error at every step. */
async function serve(t: TestContext, error: Error) {
  const definition: typeof counterEnvironment = {
    ...counterEnvironment,
    create() {
      const instance = counterEnvironment.create();
      return {
        reset: (options) => instance.reset(options),
        state: () => instance.state(),
        step() {
          throw error;
        },
      };
    },
  };
  return (await startServer(t, definition)).url;
}

describe('an error of the catalogue', () => {
  for (const [code, kind] of Object.entries(ERROR_CATALOGUE)) {
    const error = errorOf(code as keyof typeof ERROR_CATALOGUE);
    const shown = 'shown' in kind ? kind.shown : [];
    const details = {
      ...Object.fromEntries(shown.map((name) => [name, FIELDS[name]])),
      ...(code !== kind.webSocket && { reason: code }),
    };

    it(`${code}: over HTTP`, async (t) => {
      const url = await serve(t, error);
      const { session_id } = (await postJson(`${url}/reset`, {})).body;
      const { status, body, headers } = await postJson(`${url}/step`, { session_id, action: { amount: 1 } });
      const internal = code === 'EXECUTION_ERROR' ? 'Internal Server Error: ' : '';
      assert.equal(status, kind.status);
      assert.deepEqual(
        body,
        code === 'VALIDATION_ERROR' ? { detail: [ISSUE] } : { detail: `${internal}${error.message}`, code },
      );
      assert.equal(headers.get('retry-after'), 'retryAfter' in kind ? String(kind.retryAfter) : null);
    });

    it(`${code}: over a WebSocket`, async (t) => {
      const socket = await openRawSocket(await serve(t, error));
      await socket.ask({ type: 'reset' });
      const { type, data } = await socket.ask({ type: 'step', data: { amount: 1 } });
      const isInvalid = code === 'VALIDATION_ERROR';
      assert.equal(type, 'error');
      assert.deepEqual(data, {
        message: `${isInvalid ? 'Invalid message: ' : ''}${error.message}`,
        code: kind.webSocket,
        ...(isInvalid && { errors: [ISSUE] }),
        ...details,
      });
      await socket.close();
    });

    it(`${code}: over JSON-RPC`, async (t) => {
      const url = await serve(t, error);
      const { session_id } = (await postJson(`${url}/reset`, {})).body;
      const params = { name: 'take_action', arguments: { amount: 1 }, session_id };
      const { body } = await postJson(`${url}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      assert.deepEqual(body.error, {
        code: kind.jsonRpc,
        message: error.message,
        data: Object.keys(details).length > 0 ? details : null,
      });
    });
  }

  it('has the code that its environment gives it where the catalogue has none', async (t) => {
    const url = await serve(t, new EnvironmentError('MY_CODE', 'Expected another action.'));
    const { session_id } = (await postJson(`${url}/reset`, {})).body;
    const { status, body } = await postJson(`${url}/step`, { session_id, action: { amount: 1 } });
    assert.deepEqual([status, body], [400, { detail: 'Expected another action.', code: 'MY_CODE' }]);
  });
});

it('an environment that cannot be made is FACTORY_ERROR at the handshake, in vector_reset and over HTTP', async (t) => {
  let fails = false;
  const definition: typeof counterEnvironment = {
    ...counterEnvironment,
    create() {
      if (fails) throw new Error('no memory');
      return counterEnvironment.create();
    },
  };
  const { url } = await startServer(t, definition);
  const open = await openRawSocket(url);
  fails = true;
  const told = {
    message: "Environment factory 'counter' failed to create instance.",
    code: 'FACTORY_ERROR',
    factory_name: 'counter',
  };
  assert.deepEqual((await open.ask({ type: 'vector_reset', data: { count: 2 } })).data, told);
  const refused = await openRawSocket(url);
  assert.deepEqual((await refused.next()).data, told);
  assert.deepEqual(await postJson(`${url}/reset`, {}).then(({ status, body }) => [status, body.code]), [
    500,
    'FACTORY_ERROR',
  ]);
  await Promise.all([open.close(), refused.close()]);
});

test('at most 50 issues are told of one input', () => {
  const issuesOf = (schema: z.ZodType, input: unknown) => {
    try {
      readInput(schema, input);
    } catch (error) {
      return errorAnswer(error).issues;
    }
    return [];
  };
  const issues = issuesOf(z.array(z.int()), Array(80).fill('x'));
  assert.equal(issues.length, 50);
  assert.deepEqual(issues[49], {
    ...{ type: 'int_type', loc: [49], msg: 'Input should be a valid integer', input: 'x' },
  });
  const keys = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`k${i}`, i]));
  assert.equal(issuesOf(z.strictObject({}), keys).length, 50);
});
