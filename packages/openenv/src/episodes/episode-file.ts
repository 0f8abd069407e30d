import { z } from 'zod';

/** The format that this version writes and reads. */
export const EPISODE_FORMAT = 'openenv-episode/1';

/** No episode that a person plays or a benchmark asks for is longer; a replay is one request. */
export const LONGEST_EPISODE = 20_000;

/** An episode as a file: enough to play it again, and the digest that tells whether it came out the same. */
export interface EpisodeFile {
  readonly format: typeof EPISODE_FORMAT;
  readonly environment: { readonly id: string; readonly version: string };
  /** Options of the reset, with the seed. */
  readonly reset: Readonly<Record<string, unknown>>;
  readonly actions: readonly unknown[];
  /** Name of the player, as the player gives it. */
  readonly author?: string;
  /** `sha256:` and 64 hex digits over what the reset and each action answered, see `EpisodeDigest`. */
  readonly digest: string;
}

/** An episode file as clients send it; a digest may be missing, as in a record that nobody has replayed yet. */
export const episodeFileSchema = z
  .object({
    format: z.literal(EPISODE_FORMAT),
    environment: z.object({ id: z.string().max(200), version: z.string().max(200) }),
    reset: z.record(z.string(), z.unknown()).meta({ description: 'Options of the reset, with the seed' }),
    actions: z.array(z.unknown()).max(LONGEST_EPISODE),
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
      .meta({ description: 'What the episode came out as, to be compared with the replay' }),
  })
  .meta({ title: 'EpisodeFile' });
