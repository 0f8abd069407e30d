import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  type Caller,
  type EnvironmentDefinition,
  EnvironmentError,
  type EpisodeRecord,
  type StepResult,
} from '../protocol/definition.ts';
import type { GradeBody, ReadonlyDeep } from '../protocol/messages.ts';
import { isJsonObject } from '../protocol/read-json.ts';
import { type Player, played } from './session.ts';

/** The format that this version writes and reads. */
export const EPISODE_FORMAT = 'openenv-episode/1';

/** No episode that a person plays or a benchmark asks for is longer; a replay is one request. */
export const MAX_EPISODE_ACTIONS = 20_000;

/** An episode file as clients send it; the digest may be missing, as in a record that was never replayed. */
export const episodeFileSchema = z
  .object({
    format: z.literal(EPISODE_FORMAT),
    environment: z.object({ id: z.string().max(200), version: z.string().max(200) }),
    reset: z.record(z.string(), z.unknown()).describe('Options of the reset, with the seed'),
    actions: z.array(z.unknown()).max(MAX_EPISODE_ACTIONS),
    author: z
      .string()
      .trim()
      .max(200)
      .nullish()
      .describe('Name of the player, as the player gives it; nobody checks it'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .nullish()
      .describe(
        '`sha256:` and 64 hex digits over the answers to reset and actions, to be compared with the replay',
      ),
  })
  .meta({ title: 'EpisodeFile' });

/** An episode as a file: enough to play it again, and the digest that tells whether it came out the same. */
export type EpisodeFile = ReadonlyDeep<z.infer<typeof episodeFileSchema>> & { readonly digest: string };

/**
 * Plays a record for a client, in turns with other computations. `return` is the sum of the rewards. `onResult` sees the answer to the reset as result 0, that to the first action as result 1.
 * @throws EnvironmentError `UNPLAYABLE_EPISODE` naming the action at which it ends, and what the reset throws
 */
export async function replayEpisode(
  player: Player,
  record: EpisodeRecord,
  client?: string,
  onResult?: (result: StepResult, index: number) => void,
) {
  const digest = createHash('sha256');
  let next = 0;
  let total = 0;
  let done = false;
  try {
    for await (const result of played(player, record, client)) {
      digest.update(digestLine(result));
      onResult?.(result, next);
      next++;
      total += result.reward ?? 0;
      done = result.done;
    }
  } catch (error) {
    if (next === 0 || !(error instanceof EnvironmentError && error.isInputError)) throw error;
    const problem = `Action ${next - 1} of ${record.actions.length} cannot be played: ${error.message}`;
    throw new EnvironmentError('UNPLAYABLE_EPISODE', problem);
  }
  return { digest: `sha256:${digest.digest('hex')}`, return: total, done };
}

/** Replays a record on an environment of its own. @throws what `replayEpisode` throws */
export async function replayRecord(
  definition: Pick<EnvironmentDefinition, 'create'>,
  record: EpisodeRecord,
  client?: string,
) {
  const environment = definition.create();
  try {
    return await replayEpisode(environment, record, client);
  } finally {
    await environment.close?.();
  }
}

/**
 * A line of the digest of an episode, which is SHA-256 over what it answers: for the reset and for each step one line of
 * JSON with `observation`, `reward` and `done`, keys sorted. JSON keeps every bit of a number, so that equal digests mean
 * equal episodes. `metadata` is left out: it may say more in a later release without the episode being another.
 */
function digestLine({ observation, reward, done }: StepResult): string {
  return `${JSON.stringify({ observation, reward, done }, withSortedKeys)}\n`;
}

function withSortedKeys(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, value[key]]));
}

/** Grades a record of an environment with a grader. The answer names the options that it was replayed on. */
export async function gradeRecord(
  definition: EnvironmentDefinition,
  record: EpisodeRecord,
  caller?: Caller,
): Promise<GradeBody & Required<Pick<GradeBody, 'replayed'>>> {
  const grade = await definition.grade!(record, caller);
  const { episode_id, ...options } = record.reset;
  const replayed = Object.entries(options).filter(
    ([, value]) => value !== undefined && typeof value !== 'object',
  );
  return { ...grade, replayed: Object.fromEntries(replayed) };
}
