import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { descriptionsOf, knobsOf, readAbilities } from './action-schema.ts';

const schema = {
  required: ['cap'],
  properties: {
    cap: { type: 'integer', minimum: 1, maximum: 512, description: 'Most at once', default: 32 },
    share: { type: 'number', minimum: 0.1, maximum: 1 },
    tier: { type: 'string', enum: ['FP16', 'INT8'] },
    depth: { anyOf: [{ const: 0 }, { const: 1 }, { const: 2 }] },
    split: { type: 'boolean' },
    unbounded: { type: 'integer', minimum: -9007199254740991, maximum: 9007199254740991 },
    far: { type: 'integer', minimum: 0, maximum: 1e9 },
    note: { anyOf: [{ type: 'string', maxLength: 9 }, { type: 'null' }] },
    shared: { $ref: '#/$defs/tier' },
    trace: { anyOf: [{ type: 'string' }, { type: 'object' }] },
    list: { type: 'array', items: { type: 'integer' } },
    metadata: { type: 'object' },
  },
  $defs: { tier: { enum: [0, 1], description: 'Shared' } },
};

describe('the knobs of an action schema', () => {
  it('are its fields in order, each as what a person can set', () => {
    assert.deepEqual(
      knobsOf(schema).map(({ name, kind }) => [name, kind]),
      [
        ['cap', 'range'],
        ['share', 'range'],
        ['tier', 'choice'],
        ['depth', 'choice'],
        ['split', 'switch'],
        ['unbounded', 'number'],
        ['far', 'number'],
        ['note', 'text'],
        ['shared', 'choice'],
        ['trace', 'text'],
        ['list', 'json'],
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
      optional: false,
    });
  });

  it('keep the values of a choice as they are on the wire', () => {
    const [depth, shared] = ['depth', 'shared'].map((wanted) =>
      knobsOf(schema).find(({ name }) => name === wanted),
    );
    assert.deepEqual(depth?.kind === 'choice' && depth.values, [0, 1, 2]);
    assert.deepEqual(shared?.kind === 'choice' && [shared.values, shared.description], [[0, 1], 'Shared']);
  });

  it('are none for a schema without properties', () => {
    assert.deepEqual(knobsOf({}), []);
    assert.deepEqual(descriptionsOf({}), {});
  });

  it('define the fields that have a description', () => {
    assert.deepEqual(descriptionsOf(schema), { cap: 'Most at once' });
  });
});

it('what a server can is read from the paths and the reset of its description', () => {
  const schema = {
    properties: { seed: { type: 'integer' }, session_id: {}, task_id: {}, shift: { enum: ['rate', 'gpu'] } },
  };
  const reset = {
    post: {
      requestBody: { content: { 'application/json': { schema: { anyOf: [schema, { type: 'null' }] } } } },
    },
  };
  const { resetOptions, ...abilities } = readAbilities({
    paths: { '/reset': reset, '/episodes': {} },
  });
  assert.deepEqual(abilities, { episodes: true, grader: false });
  assert.deepEqual(
    resetOptions.map(({ name, kind }) => [name, kind]),
    [['shift', 'choice']],
  );
});

it('a description without paths promises nothing', () => {
  assert.deepEqual(readAbilities({}), {
    episodes: false,
    grader: false,
    resetOptions: [],
  });
});
