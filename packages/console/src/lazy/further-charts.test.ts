import assert from 'node:assert/strict';
import { it } from 'node:test';
import { firstFrame } from '../state/frame.ts';
import { chartsOfSchema } from './further-charts.ts';

const schema = {
  properties: {
    total: { type: 'integer', description: 'So far' },
    share: { type: 'number' },
    hint: { enum: ['start', 'higher', 'found'] },
    open: { type: 'boolean' },
    note: { type: 'string' },
    step_index: { type: 'integer' },
  },
};
const frame = firstFrame({
  observation: { total: 4, share: null, hint: 'found', open: true },
  reward: null,
  done: false,
  metadata: {},
});

it('there is a chart for each number, choice and boolean, but for those shown elsewhere', () => {
  const ids = (shown: string[]) => chartsOfSchema(schema, new Set(shown)).map(({ id }) => id);
  assert.deepEqual(ids([]), ['total', 'share', 'hint', 'open']);
  assert.deepEqual(ids(['total']), ['share', 'hint', 'open']);
});

it('choices are drawn as levels with their names', () => {
  const [, , hint] = chartsOfSchema(schema, new Set());
  assert.equal(hint.compared.value(frame), 2);
  assert.equal(hint.compared.format(2), 'found');
  assert.equal(hint.tick(1), 'higher');
});

it('a number that is missing in a window leaves a gap', () => {
  const [, share] = chartsOfSchema(schema, new Set());
  assert.equal(share.compared.value(frame), null);
});
