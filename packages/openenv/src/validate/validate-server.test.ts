import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CountState } from '../fixtures/counter-environment.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { startPython } from '../fixtures/python.ts';
import { startServer } from '../fixtures/start-server.ts';
import { numbersFrom, sampleValue } from './sample-action.ts';
import { validateServer } from './validate-server.ts';

test('our server passes every criterion', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const report = await validateServer(url);
  assert.deepEqual(report.summary.failed_criteria, [], JSON.stringify(report.criteria, null, 2));
  assert.equal(report.passed, true);
  assert.equal(report.mode, 'simulation');
  assert.equal(report.standard_profile, 'openenv-http/1.x');
  assert.ok(report.summary.total_count > 6);
});

test('OpenEnv’s own server passes as well', async (t) => {
  const { url, process } = await startPython('reference_server.py', 'simulation');
  t.after(() => process.kill('SIGKILL'));
  const report = await validateServer(url);
  assert.deepEqual(report.summary.failed_criteria, [], JSON.stringify(report.criteria, null, 2));
});

/** The counter with something wrong with it. */
function broken(change: (total: number, call: number) => object): typeof counterEnvironment {
  return {
    ...counterEnvironment,
    create() {
      const counter = counterEnvironment.create();
      let calls = 0;
      return {
        ...counter,
        reset: (options) => counter.reset(options),
        async step(action) {
          const result = await counter.step(action);
          return { ...result, ...change(result.observation.total, calls++) };
        },
        state: () => counter.state(),
      };
    },
  };
}

let shared = 0;
const FLAWS: readonly [string, typeof counterEnvironment, string][] = [
  ['chance', broken(() => ({ reward: Math.random() })), 'episode_determinism'],
  ['what all sessions share', broken(() => ({ reward: shared++ })), 'session_isolation'],
  ['a wrong observation', broken(() => ({ observation: { total: 'many' } })), 'observation_schema'],
  ['a reward that is null', broken(() => ({ reward: null })), 'reward_well_formed'],
  [
    'a state that is not as it says',
    {
      ...counterEnvironment,
      create: () => ({
        ...counterEnvironment.create(),
        state: () => ({ total: 'x' }) as unknown as CountState,
      }),
    },
    'state_contract',
  ],
  [
    'an action that is refused',
    broken((total) => {
      if (total >= 0) throw new Error('no');
      return {};
    }),
    'session_plays',
  ],
  [
    'a seed that is ignored',
    {
      ...counterEnvironment,
      create() {
        const counter = counterEnvironment.create();
        return {
          reset: (options) => counter.reset({ ...options, seed: 0 }),
          step: (action) => counter.step(action),
          state: () => counter.state(),
        };
      },
    },
    'seed_control',
  ],
];

for (const [flaw, environment, criterion] of FLAWS) {
  test(`${flaw} is found`, async (t) => {
    const { url } = await startServer(t, environment);
    const report = await validateServer(url);
    assert.ok(report.summary.failed_criteria.includes(criterion), JSON.stringify(report.summary));
    assert.equal(report.passed, criterion === 'seed_control', 'only some criteria are required');
  });
}

test('where no server is, every criterion fails and nothing is thrown', async () => {
  const report = await validateServer('http://127.0.0.1:1', { timeoutMs: 1000 });
  assert.equal(report.passed, false);
  assert.equal(report.summary.passed_count, 0);
  assert.equal(report.mode, 'unknown');
});

test('sampled values keep within their schema', () => {
  const schema = {
    type: 'object',
    properties: {
      level: { type: 'integer', minimum: 3, maximum: 5 },
      share: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
      tier: { enum: ['a', 'b'] },
      text: { type: 'string', minLength: 2 },
      nested: { $ref: '#/$defs/nested' },
      either: { anyOf: [{ type: 'boolean' }, { const: 'x' }] },
      list: { type: 'array', items: { type: 'integer' }, minItems: 2 },
    },
    required: ['level', 'share', 'tier', 'text', 'nested', 'either', 'list'],
    $defs: { nested: { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'] } },
  } as const;
  const random = numbersFrom(1);
  for (let sample = 0; sample < 200; sample++) {
    const value = sampleValue(schema, random) as Record<string, never>;
    assert.ok([3, 4, 5].includes(value.level!));
    assert.ok(value.share! > 0 && value.share! <= 1);
    assert.ok(['a', 'b'].includes(value.tier!));
    assert.equal(value.text, 'xx');
    assert.equal(typeof (value.nested as { on: unknown }).on, 'boolean');
    assert.ok([true, false, 'x'].includes(value.either!));
    assert.equal((value.list as unknown[]).length, 2);
  }
  assert.deepEqual(sampleValue(schema, numbersFrom(7)), sampleValue(schema, numbersFrom(7)));
});
