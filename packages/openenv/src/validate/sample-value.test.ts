import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { sampleValue } from './sample-value.ts';
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
