import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { benchmark, llmserve } from '@servegym/environments';
import { createServer, defineEnvironment, type EnvironmentDefinition } from '@servegym/openenv';
import { z } from 'zod';
import { chooseAction } from './choose-action.ts';

const OPTIONS = { waitS: undefined, timeoutMs: 5000, headers: {} };

async function serve<A, O extends object, S extends object>(
  t: TestContext,
  definition: EnvironmentDefinition<A, O, S>,
): Promise<URL> {
  const listening = await createServer(definition).listen({ port: 0, host: '127.0.0.1' });
  t.after(() => listening.close());
  return new URL(`${listening.url}/`);
}

describe('chooseAction', () => {
  it('waits on an environment that can', async (t) => {
    const base = await serve(t, benchmark.definition());
    assert.deepEqual(await chooseAction(base, OPTIONS), { wait_seconds: 1 });
    assert.deepEqual(await chooseAction(base, { ...OPTIONS, waitS: 0 }), { wait_seconds: 0 });
  });

  it('makes an action for any other, from its schema', async (t) => {
    const base = await serve(t, llmserve.definition());
    const action = await chooseAction(base, OPTIONS);
    assert.equal(llmserve.actionSchema.safeParse(action).success, true, JSON.stringify(action));
    await assert.rejects(chooseAction(base, { ...OPTIONS, waitS: 2 }), {
      message: /have no `wait_seconds`: leave --wait out, or give an --action/,
    });
  });

  it('asks for an action where it would have to guess', async (t) => {
    const puzzle = defineEnvironment({
      ...{ id: 'puzzle', version: '1', name: 'puzzle', description: '' },
      action: z.strictObject({ word: z.string().regex(/^x+y$/) }),
      observation: z.object({}),
      state: z.object({}),
      create: () => ({
        reset: () => ({ observation: {}, reward: null, done: false }),
        step: () => ({ observation: {}, reward: 0, done: false }),
        state: () => ({}),
      }),
    });
    await assert.rejects(chooseAction(await serve(t, puzzle), OPTIONS), {
      message: /cannot make an action.*Give one with --action/,
    });
  });

  it('says that nobody is there', async () => {
    await assert.rejects(chooseAction(new URL('http://127.0.0.1:9/'), OPTIONS), {
      message: /cannot read http:\/\/127\.0\.0\.1:9\/schema: .*Is an OpenEnv server running there\?/,
    });
  });
});
