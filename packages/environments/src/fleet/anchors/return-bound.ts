import type { FleetRequests } from '../requests/fleet-requests.ts';
import { FLEET_CLASSES, type FleetTask } from '../tasks/fleet-task.ts';

/** A return that no sequence of actions can exceed on these requests: every request earns its price, and no GPU costs any. */
export function fleetReturnBound(task: FleetTask, requests: FleetRequests): number {
  const { inputTokens, outputTokens, classes } = requests;
  const prices = FLEET_CLASSES.map((name) => task.prices[name]);
  let usd = 0;
  for (let i = 0; i < classes.length; i++) {
    const { usdPerMillionInput, usdPerMillionOutput } = prices[classes[i]];
    usd += (inputTokens[i] * usdPerMillionInput + outputTokens[i] * usdPerMillionOutput) / 1e6;
  }
  return usd / task.referenceUsd;
}
