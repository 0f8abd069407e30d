import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from './session.ts';
import { type DurationMeter, nextTurn, readClientJson } from './turns.ts';

/** A pace at which each computation is long. */
const LONG = { isLong: true, time: (compute: () => unknown) => compute() } as DurationMeter;

test('clients take turns, however many computations of one wait', async () => {
  const served: string[] = [];
  const wait = (client: string) => nextTurn(client).then(() => void served.push(client));
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(wait));
  assert.equal(served.join(''), 'abcabaa');
});

test('the resets of a client wait behind its own, not behind all those of another', async () => {
  const served: string[] = [];
  const opened = (client: string) => {
    const result = { observation: {}, reward: null, done: false };
    const reset = () => {
      served.push(client);
      return result;
    };
    return new Session({ reset, step: () => result, state: () => ({}) }, { client, resetDuration: LONG });
  };
  await Promise.all(['a', 'a', 'a', 'b'].map((client) => opened(client).reset({})));
  assert.equal(served.join(''), 'abaa');
});

test('a long text is read in a turn of its client, a short one at once', async () => {
  const served: string[] = [];
  const long = `"${'x'.repeat(40_000)}"`;
  const read = async (text: string, client: string) => {
    const reading = await readClientJson(text, client);
    served.push(`${client} ${reading.ok}`);
  };
  assert.ok(!(readClientJson('{}', 'a') instanceof Promise));
  await Promise.all([read(long, 'a'), read(long, 'a'), read(`${long}}`, 'b')]);
  assert.deepEqual(served, ['a true', 'b false', 'a true']);
});
