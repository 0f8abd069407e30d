import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from './session.ts';

/** An environment whose steps end when they are told to, or when it is closed. */
function slowEnvironment() {
  const told: string[] = [];
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  const result = { observation: {}, reward: 0, done: false };
  const environment = {
    reset: () => result,
    step: () =>
      over.then(() => {
        told.push('stepped');
        return result;
      }),
    state: () => ({}),
    close() {
      told.push('closed');
      finish();
    },
  };
  return { environment, told, finish };
}

test('a session closes its environment once the step under way is done', async () => {
  const { environment, told, finish } = slowEnvironment();
  const session = new Session(environment);
  await session.reset({});
  const step = session.step({});
  const closed = session.close();
  finish();
  await Promise.all([step, closed]);
  assert.deepEqual(told, ['stepped', 'closed']);
});

test('a session closes its environment though a step does not come to an end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { environment, told } = slowEnvironment();
  const session = new Session(environment);
  await session.reset({});
  const step = session.step({});
  const closed = session.close();
  t.mock.timers.tick(2000);
  await Promise.all([step, closed]);
  assert.deepEqual(told, ['closed', 'stepped']);
});
