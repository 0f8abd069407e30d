import type { AsyncPolicy, PolicyEpisode, PolicyStep } from '@servegym/agents';
import type { JobContext, Json } from '@servegym/jobs';
import { openServed, type ServedEnvironment } from './served-environment.ts';

export interface ChooseActionInput {
  readonly environment: ServedEnvironment;
  readonly policy: string;
  readonly episode: PolicyEpisode;
  /** All steps of the episode so far; the last is the one to choose for. */
  readonly steps: readonly PolicyStep<unknown, unknown>[];
}

export interface ChosenAction<Action> {
  readonly action: Action;
  readonly explanation?: unknown;
  /** The actions of the whole episode, of a policy that has planned them. */
  readonly plan?: readonly Action[];
}

/** A policy that waits on this thread for the next step of its episode. */
interface Kept {
  readonly key: string;
  readonly policy: AsyncPolicy<unknown, unknown>;
  /** Steps that it has seen, as JSON. */
  readonly seen: string[];
}

let kept: Kept | undefined;

/** Chooses an action. A policy that is not on this thread any more is shown the steps that it has to know. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { environment, policy: name, episode, steps } = input as unknown as ChooseActionInput;
  const { policies } = await openServed(environment, { ...episode.resetOptions }, context);
  const key = JSON.stringify([environment, name, episode]);
  const before = steps.slice(0, -1).map((step) => JSON.stringify(step));
  let current = kept;
  // A policy that fails does not go on.
  kept = undefined;
  if (current?.key !== key || !isBeginning(current.seen, before)) {
    current = { key, policy: policies.create(name), seen: [] };
    current.policy.reset(episode);
  }
  const { policy, seen } = current;
  for (let index = seen.length; index < before.length; index++) {
    const step = steps[index];
    if (policy.watch) policy.watch(step, steps[index + 1].previousAction);
    else await policy.act(step);
  }
  const step = steps.at(-1)!;
  const action = await policy.act(step);
  seen.splice(0, seen.length, ...before, JSON.stringify(step));
  kept = current;
  const { plan } = policy as { readonly plan?: readonly unknown[] };
  const chosen: ChosenAction<unknown> = {
    action,
    ...(policy.explain && { explanation: policy.explain() }),
    ...(plan && { plan }),
  };
  return chosen as unknown as Json;
}

function isBeginning(seen: readonly string[], steps: readonly string[]): boolean {
  return seen.length <= steps.length && seen.every((step, index) => step === steps[index]);
}
