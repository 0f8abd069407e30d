import type { Environment, EpisodeRecord, StepResult } from '../definition.ts';
import { Turn } from './turns.ts';

/** Plays a record on an environment for a client, in turns with other computations, and returns the last result. */
export async function replay<Action, Observation, State>(
  environment: Environment<Action, Observation, State>,
  { reset, actions }: EpisodeRecord<Action>,
  client?: string,
): Promise<StepResult<Observation>> {
  const turn = new Turn(client);
  await turn.next();
  let result = await environment.reset(reset);
  for (const action of actions) {
    if (turn.isOver) await turn.next();
    const next = environment.step(action);
    result = next instanceof Promise ? await next : next;
  }
  return result;
}
