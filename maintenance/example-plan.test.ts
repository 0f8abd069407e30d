import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { EXAMPLE, examplePlan } from './example-plan.ts';

it('data: the example of the page for plans is what `plan` answers', async () => {
  assert.deepEqual(JSON.parse(readFileSync(EXAMPLE, 'utf8')), await examplePlan());
});
