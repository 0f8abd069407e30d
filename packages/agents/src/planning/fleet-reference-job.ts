import {
  type FleetSeedReturns,
  type FleetTaskId,
  fleet,
  hpaInFlight,
  RateRule,
  type RateRuleParameters,
} from '@servegym/environments';
import type { Json } from '@servegym/jobs';
import { planFleet } from './plan-fleet.ts';

/** One seed of a task to be played. */
export interface FleetReferenceInput {
  readonly taskId: FleetTaskId;
  readonly seed: number;
  /** Parameters of the rule. */
  readonly rule: RateRuleParameters;
}

/** The job `fleet-reference-returns`: plays one seed of a task with the autoscaler, the rule and the clairvoyant. */
export function runJob(input: Json): Json {
  const { taskId, seed, rule } = input as unknown as FleetReferenceInput;
  const task = fleet.tasks.shipped[taskId];
  const requests = fleet.drawRequests(task, seed);
  const returns: FleetSeedReturns = {
    default: fleet.anchors.controlledReturn(task, seed, requests, hpaInFlight()),
    rule: fleet.anchors.controlledReturn(task, seed, requests, new RateRule(rule)),
    clairvoyant: planFleet(task, seed, { requests, controllers: [new RateRule(rule)] }).return,
  };
  return Object.fromEntries(
    Object.entries(returns).map(([name, value]) => [name, Math.round(value * 1e6) / 1e6]),
  );
}
