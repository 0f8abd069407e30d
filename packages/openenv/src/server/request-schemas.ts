import { z } from 'zod';
import { LOG_LISTS } from './episode-log.ts';

const sessionId = z
  .string()
  .max(255)
  .nullish()
  .meta({ description: "The session to act on; without one, the caller's latest" });

/** What the server itself reads of a reset; the options have a reader of their own. */
export const resetRequest = z
  .looseObject({
    session_id: z
      .string()
      .max(255)
      .nullish()
      .meta({ description: 'The session to start again; without one, a new session is opened' }),
  })
  .meta({ title: 'ResetRequest', examples: [{ seed: 42, episode_id: 'episode-001' }, {}] });

export const stepRequest = z
  .looseObject({
    action: z
      .record(z.string(), z.unknown())
      .meta({ description: "The action; it must conform to the environment's action schema" }),
    session_id: sessionId,
    timeout_s: z
      .number()
      .gt(0)
      .nullish()
      .meta({ description: 'Accepted for compatibility; a step always runs to its end' }),
    request_id: z.string().max(255).nullish().meta({ description: 'A label of the request' }),
  })
  .meta({ title: 'StepRequest' });

export const graderRequest = z
  .looseObject({
    session_id: sessionId,
    episode_log: z
      .union([
        z.array(z.unknown()),
        ...LOG_LISTS.map((list) => z.looseObject({ [list]: z.array(z.unknown()) })),
      ])
      .nullish()
      .meta({
        description:
          'Steps, each an action or an object with an `action`. The actions are replayed; claimed observations are ignored',
      }),
  })
  .meta({ title: 'GraderRequest' });
