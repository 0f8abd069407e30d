import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import {
  type CountAction,
  type CountObservation,
  type CountState,
  counterEnvironment,
} from '../fixtures/counter-environment.ts';
import { toolEnvironment } from '../fixtures/tool-environment.ts';
import { defineTool, type Environment, type EnvironmentDefinition } from '../protocol/definition.ts';
import { selfTest } from './self-test.ts';

type Counter = Environment<CountAction, CountObservation, CountState>;
type Definition = EnvironmentDefinition<CountAction, CountObservation, CountState>;

/** The counter with instances that are changed. */
function flawed(change: (counter: Counter, nth: number) => Partial<Counter>): Definition {
  let made = 0;
  return {
    ...counterEnvironment,
    create() {
      const counter = counterEnvironment.create();
      return { ...counter, ...change(counter, made++) };
    },
  };
}

let shared = 0;
const FLAWS: Readonly<Record<string, readonly [Definition, RegExp]>> = {
  identity: [
    {
      ...counterEnvironment,
      tools: [defineTool({ name: 'step', description: 'x', input: z.object({}), call: () => 1 })],
    },
    /`step`/,
  ],
  episode: [
    flawed(() => ({
      step() {
        throw new Error('out of order');
      },
    })),
    /^out of order$/,
  ],
  results: [
    flawed((counter) => ({
      async step(action) {
        return { ...(await counter.step(action)), observation: { total: 1.5, note: '' } };
      },
    })),
    /^task short: step 1: /,
  ],
  state: [
    flawed((counter) => ({ state: () => ({ ...counter.state(), total: 'many' as never }) })),
    /^task short: step 0: /,
  ],
  isolation: [
    flawed((counter) => ({
      reset(options) {
        shared++;
        return counter.reset(options);
      },
      state: () => ({ ...counter.state(), seed: shared }),
    })),
    /^task short: its state has changed/,
  ],
  replay: [
    flawed((counter, nth) => ({
      async step(action) {
        const result = await counter.step(action);
        return { ...result, observation: { ...result.observation, note: String(nth) } };
      },
    })),
    /^task short: step 1 is another/,
  ],
  grade: [
    { ...counterEnvironment, grade: () => ({ score: 1, breakdown: {}, feedback: '' }) },
    /^task short: expected a score inside \(0, 1\), got 1/,
  ],
  close: [
    flawed(() => ({
      close() {
        throw new Error('stuck');
      },
    })),
    /^stuck$/,
  ],
};

describe('the self-test of an environment', () => {
  it('passes sound environments, and returns what was seen last', async () => {
    for (const definition of [counterEnvironment, toolEnvironment]) {
      const { passed, environment, version, criteria, observation, state } = await selfTest(definition, {
        action: { amount: 2 },
      });
      assert.deepEqual(
        criteria.filter((criterion) => criterion.passed !== true),
        [],
      );
      assert.deepEqual([passed, environment, version], [true, definition.id, definition.version]);
      assert.deepEqual(observation, { total: 6, note: '' });
      assert.equal((state as { step_count: number }).step_count, 3);
    }
  });

  it('leaves out what an environment does not claim', async () => {
    const { grade, tasks, ...plain } = counterEnvironment;
    const { passed, criteria } = await selfTest({ ...plain, replayable: false });
    const leftOut = criteria.filter((criterion) => criterion.passed === null).map(({ id }) => id);
    assert.deepEqual([passed, leftOut], [true, ['replay', 'grade']]);
  });

  for (const [id, [definition, details]] of Object.entries(FLAWS)) {
    it(`finds what is wrong: ${id}`, async () => {
      const { passed, criteria } = await selfTest(definition);
      assert.equal(passed, false);
      const found = criteria.find((criterion) => criterion.id === id)!;
      assert.equal(found.passed, false, JSON.stringify(criteria));
      assert.match(found.details!, details);
    });
  }
});
