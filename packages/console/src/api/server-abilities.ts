import { type Knob, knobsOf } from './action-schema.ts';
import type { Fields } from './wire.ts';

/** Features of a server beside playing, from its OpenAPI document. */
export interface ServerAbilities {
  /** Episodes can be taken out as files and opened again. */
  readonly episodes: boolean;
  readonly leaderboard: boolean;
  readonly grader: boolean;
  /** Options of the reset beside the task and the seed. */
  readonly resetOptions: readonly Knob[];
}

export const NO_ABILITIES: ServerAbilities = {
  episodes: false,
  leaderboard: false,
  grader: true,
  resetOptions: [],
};

/** Options of a reset that the page has a place of its own for, or that are no business of a person. */
const OWN_PLACE = new Set(['seed', 'task_id', 'session_id', 'episode_id', 'split', 'index']);

export function readAbilities(description: Fields): ServerAbilities {
  const paths = (description.paths ?? {}) as Record<string, Fields | undefined>;
  return {
    episodes: paths['/episodes'] !== undefined,
    leaderboard: paths['/leaderboard'] !== undefined,
    grader: paths['/grader'] !== undefined,
    resetOptions: knobsOf(resetSchema(paths['/reset'])).filter(({ name }) => !OWN_PLACE.has(name)),
  };
}

/** The schema of the body of `POST /reset`, which may stand beside null. */
function resetSchema(path: Fields | undefined): Fields {
  const route = path?.post as { requestBody?: { content?: Record<string, { schema?: Fields }> } } | undefined;
  const schema = route?.requestBody?.content?.['application/json']?.schema ?? {};
  const parts = (schema.anyOf ?? []) as Fields[];
  return parts.find(({ properties }) => properties !== undefined) ?? schema;
}
