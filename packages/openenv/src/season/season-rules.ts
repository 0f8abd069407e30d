import { createHash, createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';

/** Fewest episodes of each task that a submission is judged by. */
export const LEAST_EPISODES = 20;

export const seasonRules = z.strictObject({
  name: z.string(),
  environment: z.strictObject({ id: z.string(), version: z.string() }),
  task_ids: z.array(z.union([z.string(), z.number()])).min(1),
  episodes: z.int().min(LEAST_EPISODES).meta({ description: 'Episodes of each task, for each submission' }),
  minutes: z
    .number()
    .gt(0)
    .meta({ description: 'Time from the reset of an episode after which it takes no more actions' }),
  created_at: z.int().meta({ description: 'Milliseconds since the epoch' }),
  commitment: z
    .string()
    .meta({ description: 'SHA-256 of the secret that all seeds come from, which is published at the end' }),
});
/** Public rules of a season, known from its beginning. */
export type SeasonRules = Readonly<z.infer<typeof seasonRules>>;

export type TaskId = string | number;

/** One episode of a season. */
export interface SeasonEpisode {
  /** Number of the submission, from 1, in the order of admission. */
  readonly submission: number;
  readonly taskId: TaskId;
  /** From 0. */
  readonly episode: number;
}

const SECRET_BYTES = 32;
/** Wide seeds: the simulator draws nothing from them that 2^32 tries could find. */
const LEAST_SEED = 2 ** 52;

/** A secret that nobody chose, in hex. */
export function drawSecret(): string {
  return randomBytes(SECRET_BYTES).toString('hex');
}

/** Commitment to a secret: published at the start, so that the operator can choose no other seeds afterwards. */
export function commitmentOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/**
 * Seed of an episode: each submission has its own, so that none can look into another's. Only who has the secret can
 * compute it; 52 random bits.
 */
export function seedOf(secret: string, { submission, taskId, episode }: SeasonEpisode): number {
  const text = JSON.stringify([submission, String(taskId), episode]);
  const bits = createHmac('sha256', secret).update(text).digest().readBigUInt64BE();
  return LEAST_SEED + Number(bits % BigInt(LEAST_SEED));
}
