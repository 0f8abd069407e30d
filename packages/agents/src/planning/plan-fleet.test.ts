import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type FleetAction,
  FleetEpisode,
  type FleetTask,
  fleet,
  hpaInFlight,
  ruleController,
} from '@servegym/environments';
import fc from 'fast-check';
import { planFleet } from './plan-fleet.ts';

/** A task whose episodes are short. */
const short = (task: FleetTask, windows: number): FleetTask => ({ ...task, id: 'short', windows });

test('the clairvoyant earns more than the controller it starts from, and its actions earn what it says', () => {
  const task = short(fleet.tasks.shipped.flash_crowds, 24);
  const requests = fleet.drawRequests(task, 7);
  const plan = planFleet(task, 7, { requests, controllers: [hpaInFlight()] });
  const replay = new FleetEpisode(task, 7);
  for (const action of plan.actions) replay.step(action);
  assert.equal(replay.totals.reward, plan.return);
  const controlled = new FleetEpisode(task, 7);
  const hpa = hpaInFlight();
  while (!controlled.done) {
    const { window: stepIndex, action: previousAction } = controlled;
    controlled.step(hpa.act({ observation: controlled.observation(), previousAction, stepIndex }));
  }
  assert.ok(plan.return > controlled.totals.reward + 1, `${plan.return} ${controlled.totals.reward}`);
  assert.ok(plan.return < fleet.anchors.bound(task, requests));
});

test('the clairvoyant leaves masked knobs at the default', () => {
  const task: FleetTask = {
    ...short(fleet.tasks.shipped.flash_crowds, 8),
    maskedKnobs: ['max_num_batched_tokens'],
  };
  const requests = fleet.drawRequests(task, 7);
  const { actions } = planFleet(task, 7, { requests, controllers: [ruleController({ tokenBudget: 512 })] });
  assert.deepEqual(
    new Set(actions.map((action) => action.max_num_batched_tokens)),
    new Set([task.defaultAction.max_num_batched_tokens]),
  );
});

test('no drawn sequence of actions exceeds the bound', () => {
  const settings = fc.record({
    replicas: fc.nat(8),
    prefill_replicas: fc.nat(2),
    routing_prefix: fc.constantFrom(0, 0.5, 1),
    max_num_batched_tokens: fc.constantFrom(512, 2048, 16_384),
    max_num_active_seqs: fc.constantFrom(16, 128, 512),
  });
  const drawn = fc.record({
    id: fc.constantFrom(...fleet.tasks.shippedIds),
    seed: fc.nat(1000),
    actions: fc.array(settings, { minLength: 4, maxLength: 4 }),
    usdPerMillion: fc.constantFrom(0.02, 0.18, 5),
  });
  fc.assert(
    fc.property(drawn, ({ id, seed, actions, usdPerMillion }) => {
      const known = fleet.tasks.shipped[id];
      const price = { usdPerMillionInput: usdPerMillion, usdPerMillionOutput: usdPerMillion };
      const task = {
        ...short(known, actions.length),
        prices: { interactive: price, batch: price, best_effort: price },
        // The bill of what is still running at the end is what makes an episode this short lose.
        defaultAction: { ...known.defaultAction, replicas: 1 },
      };
      const requests = fleet.drawRequests(task, seed);
      const episode = new FleetEpisode(task, seed, requests);
      for (const change of actions) episode.step({ ...task.defaultAction, ...change } as FleetAction);
      const bound = fleet.anchors.bound(task, requests);
      assert.ok(episode.totals.reward <= bound, `${episode.totals.reward} ${bound}`);
    }),
    { numRuns: 12 },
  );
});

test('the bound of one request is its price less its least GPU time', () => {
  const task = {
    ...fleet.tasks.shipped.diurnal,
    defaultAction: { ...fleet.tasks.shipped.diurnal.defaultAction, replicas: 0 },
  };
  const requests = {
    inputTokens: Int32Array.of(1000),
    outputTokens: Int32Array.of(101),
    classes: Uint8Array.of(0),
    starts: Int32Array.of(0),
    startTicks: Float64Array.of(0),
    nextTurn: Int32Array.of(-1),
    thinkTicks: Float64Array.of(0),
    texts: null,
  };
  // H100, USD 3 an hour: 21.87 us a token, 54.506 us a sequence and 2,337.5 / 512 us of the base; 55.695 ns a context token;
  // 1.3254 ns a pair of attention. All compute and no reading of weights is the tightest of the four weights here.
  const us =
    21.87 * 1100 + (54.506 + 2337.5 / 512) * 100 + 0.055695 * 100 * 1050 + (0.0013254 * 1000 * 1000) / 2;
  const usd = (1101 * 0.18) / 1e6 - ((us / 1e6) * 3) / 3600;
  assert.ok(Math.abs(fleet.anchors.bound(task, requests) - usd / task.referenceUsd) < 1e-12);
});
