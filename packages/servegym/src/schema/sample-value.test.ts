import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { sampleValue } from './sample-value.ts';
import { schemaCheck } from './schema-check.ts';

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
