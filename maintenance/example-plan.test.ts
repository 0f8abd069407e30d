import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { EXAMPLE, examplePlan } from './example-plan.ts';

interface Outlined {
  readonly usd_per_hour: number;
  readonly pools: readonly { readonly role: string; readonly profile: string; readonly engines: number }[];
}

it('data: the example of the page for plans is what `plan` answers', async () => {
  const shown = JSON.parse(readFileSync(EXAMPLE, 'utf8'));
  const planned = await examplePlan();
  const outline = (result: typeof shown) =>
    [...result.plans, ...result.riskier].map((plan: Outlined) => [
      ...[Object.keys(plan), plan.usd_per_hour],
      ...plan.pools.map(({ role, profile, engines }) => `${engines} ${profile} ${role}`),
    ]);
  assert.deepEqual(Object.keys(shown), Object.keys(planned));
  assert.deepEqual(outline(shown), outline(planned));
});
