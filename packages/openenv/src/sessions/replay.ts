import { setImmediate } from 'node:timers/promises';
import type { Environment, EpisodeRecord, StepResult } from '../definition.ts';

/** A long replay lets other sessions be served this often, steps. */
const STEPS_AT_A_TIME = 256;

/** Plays a record on an environment and returns the last result. */
export async function replay<Action, Observation, State>(
  environment: Environment<Action, Observation, State>,
  { reset, actions }: EpisodeRecord<Action>,
): Promise<StepResult<Observation>> {
  let result = await environment.reset(reset);
  for (const [index, action] of actions.entries()) {
    const next = environment.step(action);
    result = next instanceof Promise ? await next : next;
    if (index % STEPS_AT_A_TIME === STEPS_AT_A_TIME - 1) await setImmediate();
  }
  return result;
}
