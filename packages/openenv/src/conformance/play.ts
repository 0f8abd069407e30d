import type { JsonObject } from '../json/json-object.ts';
import { CheckFailure } from './check.ts';
import { at, shown } from './foreign-json.ts';
import type { InspectionSocket } from './inspection-socket.ts';

/** The seed of episodes that are played, but where another is needed. */
export const SEED = 7;
/** Its label. */
export const EPISODE_ID = 'servegym-validate';

export interface PlayPlan {
  /** Default `SEED`. */
  readonly seed?: number;
  readonly action: JsonObject;
  readonly resetOptions: JsonObject;
  /** Most steps. */
  readonly steps: number;
}

/** What a server answered while an episode was played, message by message. */
export interface Play {
  /** Data of the reply to the reset, then to each step. */
  readonly observations: readonly JsonObject[];
  /** Data of the state after the reset, then after each step. */
  readonly states: readonly JsonObject[];
}

/** Resets and steps until the episode ends or the plan does, and asks for the state each time. @throws CheckFailure */
export async function playEpisode(
  socket: InspectionSocket,
  { seed = SEED, action, resetOptions, steps }: PlayPlan,
): Promise<Play> {
  const reset = { type: 'reset', data: { seed, episode_id: EPISODE_ID, ...resetOptions } };
  const observations = [await dataOf(socket, reset, 'observation')];
  const states = [await dataOf(socket, { type: 'state' }, 'state')];
  for (let step = 0; step < steps && observations.at(-1)?.done !== true; step++) {
    observations.push(await dataOf(socket, { type: 'step', data: action }, 'observation'));
    states.push(await dataOf(socket, { type: 'state' }, 'state'));
  }
  return { observations, states };
}

/** The data of a reply, which must be of a type. @throws CheckFailure */
export async function dataOf(
  socket: InspectionSocket,
  message: JsonObject,
  type: 'observation' | 'state' | 'mcp',
): Promise<JsonObject> {
  const reply = await socket.ask(message);
  const data = at(reply, 'data');
  if (reply.type === type && typeof data === 'object' && data !== null) return data as JsonObject;
  throw new CheckFailure(
    `expected a message of type \`${type}\` in reply to \`${String(message.type)}\`, got ${shown(reply)}`,
  );
}
