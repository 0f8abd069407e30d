import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FleetTask, fleet } from '@servegym/environments';
import { QUICK } from '../core/checks/task-check.ts';
import { checkFleetTask } from './check-fleet.ts';

/** A first look at so many windows of 30 s. */
async function checked(task: FleetTask, fleetWindows: number) {
  const { results, passed } = await checkFleetTask(task, { ...QUICK, fleetWindows });
  return {
    passed,
    outcomeOf: (id: string) => results.find((result) => result.id === id)?.outcome,
    figuresOf: (id: string) => results.find((result) => result.id === id)!.figures,
  };
}

test('the check of a fleet says which knobs matter, and that serving less does not pay', async () => {
  const { outcomeOf, figuresOf } = await checked(fleet.tasks.shipped.flash_crowds, 16);
  for (const id of ['conservation', 'repeatability', 'chance_loses', 'nobody_served', 'one_replica']) {
    assert.equal(outcomeOf(id), 'pass', id);
  }
  const figures = figuresOf('knobs_left_alone');
  assert.match(String(figures.decisions), /replicas/);
  assert.ok(Number(figures['planner without replicas']) > 0.1);
  assert.ok('rule without routing_cache' in figures);
  // There is no second kind of replica: nothing to check about it.
  assert.ok(!Object.keys(figures).some((name) => name.includes('second_replicas')));
});

test('a task whose tokens are worth nothing fails: serving nobody earns more than the rule', async () => {
  const worthless = { usdPerMillionInput: 0.001, usdPerMillionOutput: 0.001 };
  const task: FleetTask = {
    ...fleet.tasks.shipped.flash_crowds,
    id: 'worthless',
    maskedKnobs: ['max_num_active_seqs', 'routing_cache', 'routing_prefix', 'prefill_replicas'],
    prices: { interactive: worthless, batch: worthless, best_effort: worthless },
  };
  const { passed, outcomeOf } = await checked(task, 6);
  assert.equal(passed, false);
  assert.equal(outcomeOf('nobody_served'), 'fail');
  assert.equal(outcomeOf('conservation'), 'pass');
});
