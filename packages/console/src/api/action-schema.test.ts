import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { descriptionsOf, knobsOf } from './action-schema.ts';

const schema = {
  properties: {
    cap: { type: 'integer', minimum: 1, maximum: 512, description: 'Most at once', default: 32 },
    share: { type: 'number', minimum: 0.1, maximum: 1 },
    tier: { type: 'string', enum: ['FP16', 'INT8'] },
    split: { type: 'boolean' },
    metadata: { type: 'object' },
    unbounded: { type: 'number' },
  },
};

describe('the knobs of an action schema', () => {
  it('are its bounded numbers, choices and booleans, in order', () => {
    assert.deepEqual(
      knobsOf(schema).map(({ name, kind }) => [name, kind]),
      [
        ['cap', 'range'],
        ['share', 'range'],
        ['tier', 'choice'],
        ['split', 'switch'],
      ],
    );
  });

  it('keep bounds, whole numbers, defaults and descriptions', () => {
    assert.deepEqual(knobsOf(schema)[0], {
      name: 'cap',
      kind: 'range',
      minimum: 1,
      maximum: 512,
      integer: true,
      description: 'Most at once',
      initial: 32,
    });
  });

  it('are none for a schema without properties', () => {
    assert.deepEqual(knobsOf({}), []);
    assert.deepEqual(descriptionsOf({}), {});
  });

  it('define the fields that have a description', () => {
    assert.deepEqual(descriptionsOf(schema), { cap: 'Most at once' });
  });
});
