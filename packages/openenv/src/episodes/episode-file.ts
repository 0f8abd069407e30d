import { z } from 'zod';
import type { ReadonlyDeep } from '../protocol/http-body.ts';

/** The format that this version writes and reads. */
export const EPISODE_FORMAT = 'openenv-episode/1';

/** No episode that a person plays or a benchmark asks for is longer; a replay is one request. */
export const MAX_EPISODE_ACTIONS = 20_000;

/** An episode file as clients send it; the digest may be missing, as in a record that was never replayed. */
export const episodeFileSchema = z
  .object({
    format: z.literal(EPISODE_FORMAT),
    environment: z.object({ id: z.string().max(200), version: z.string().max(200) }),
    reset: z.record(z.string(), z.unknown()).meta({ description: 'Options of the reset, with the seed' }),
    actions: z.array(z.unknown()).max(MAX_EPISODE_ACTIONS),
    author: z
      .string()
      .trim()
      .max(200)
      .nullish()
      .meta({ description: 'Name of the player, as the player gives it; nobody checks it' }),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .nullish()
      .meta({
        description:
          '`sha256:` and 64 hex digits over the answers to reset and actions, to be compared with the replay',
      }),
  })
  .meta({ title: 'EpisodeFile' });

/** An episode as a file: enough to play it again, and the digest that tells whether it came out the same. */
export type EpisodeFile = ReadonlyDeep<z.infer<typeof episodeFileSchema>> & { readonly digest: string };
