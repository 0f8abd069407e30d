import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import {
  type CountAction,
  type CountObservation,
  type CountState,
  counterEnvironment,
} from '../fixtures/counter-environment.ts';
import { toolEnvironment } from '../fixtures/tool-environment.ts';
import { defineTool, type Environment, type EnvironmentDefinition } from '../protocol/definition.ts';
import { sampleValue } from './sample-value.ts';
import { selfTest } from './self-test.ts';
import { schemaCheck } from './subject.ts';

const jsonSchema = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }) as Record<string, unknown>;

describe('sampleValue', () => {
  it('fills in what an action must have, by default, enumeration or range', () => {
    const schema = jsonSchema(
      z.strictObject({
        cap: z.int().min(4).max(512),
        share: z.number().gt(0).max(1),
        tier: z.enum(['FP16', 'INT8']),
        split: z.boolean(),
        text: z.string().min(3),
        wait: z.number().default(2),
        note: z.string().optional(),
        point: z.tuple([z.number(), z.int().max(-3)]),
        nested: z.object({ kind: z.literal('a') }),
      }),
    );
    const value = sampleValue(schema) as Record<string, unknown>;
    assert.equal(schemaCheck(schema)(value), null);
    assert.equal('note' in value, false);
    assert.deepEqual([value.cap, value.tier, value.text], [4, 'FP16', 'aaa']);
  });

  it('follows references and takes the first alternative that is not null', () => {
    const schema = {
      $defs: {
        Inner: {
          type: 'object',
          properties: { n: { type: 'integer', exclusiveMinimum: 1 } },
          required: ['n'],
        },
      },
      type: 'object',
      properties: { inner: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/Inner' }] } },
      required: ['inner'],
    };
    assert.deepEqual(sampleValue(schema), { inner: { n: 2 } });
  });

  it('gives up where it would have to guess, and ends on a schema without end', () => {
    assert.equal(sampleValue({ type: 'string', pattern: '^x{3}$' }), undefined);
    assert.equal(sampleValue({ type: 'object', required: ['unknown'] }), undefined);
    assert.equal(sampleValue({ $ref: '#' }), undefined);
    assert.equal(
      sampleValue({ type: 'object', properties: { me: { $ref: '#' } }, required: ['me'] }),
      undefined,
    );
  });

  it('draws values that the schema takes, and all of its choices', () => {
    const schema = jsonSchema(
      z.strictObject({
        cap: z.int().min(4).max(6),
        share: z.number().gt(0).max(1),
        low: z.number().max(-2),
        tier: z.enum(['FP16', 'INT8']).default('FP16'),
        note: z.string().optional(),
        either: z.union([z.boolean(), z.int().min(3)]),
        metadata: z.record(z.string(), z.unknown()).optional(),
      }),
    );
    const check = schemaCheck(schema);
    const drawn = Array.from({ length: 200 }, (_, index) => {
      // Numbers spread over [0, 1): multiples of the golden ratio.
      let call = 0;
      return sampleValue(schema, () => (0.37 + 0.6180339887498949 * (17 * index + call++)) % 1);
    }) as Record<string, unknown>[];
    for (const value of drawn) assert.equal(check(value), null);
    const seen = (key: string) => new Set(drawn.map((value) => value[key]));
    assert.deepEqual([...seen('cap')].sort(), [4, 5, 6]);
    assert.deepEqual(
      [seen('tier').has('INT8'), seen('note').has('a'), seen('note').has(undefined)],
      [true, true, true],
    );
    assert.deepEqual([...seen('metadata')], [undefined]);
  });

  it('stays inside the range of any number', () => {
    const bound = fc.integer({ min: -1e6, max: 1e6 });
    fc.assert(
      fc.property(
        bound,
        bound,
        fc.boolean(),
        fc.constantFrom('integer', 'number'),
        (a, b, exclusive, type) => {
          const [low, high] = a < b ? [a, b] : [b, a];
          fc.pre(high - low > 2);
          const schema = exclusive
            ? { type, exclusiveMinimum: low, exclusiveMaximum: high }
            : { type, minimum: low, maximum: high };
          assert.equal(schemaCheck(schema)(sampleValue(schema)), null);
        },
      ),
    );
  });
});

describe('schemaCheck', () => {
  it('says what is wrong and where', () => {
    const check = schemaCheck({ type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] });
    assert.equal(check({ n: 1 }), null);
    assert.equal(check({ n: 'x' }), '/n must be integer');
    assert.match(check({}) ?? '', /required property 'n'/);
  });

  it('takes keywords and formats that it does not know', () => {
    const check = schemaCheck({ type: 'string', format: 'binary', discriminator: { propertyName: 'type' } });
    assert.equal(check('x'), null);
  });

  it('refuses what is no schema', () => {
    assert.throws(() => schemaCheck({ type: 'nonsense' }));
  });
});

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
  end: [
    flawed((counter) => ({ step: async (action) => ({ ...(await counter.step(action)), done: false }) })),
    /^expected `done` within 10000 steps/,
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
    assert.deepEqual([passed, leftOut], [true, ['replay', 'grade', 'end']]);
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
