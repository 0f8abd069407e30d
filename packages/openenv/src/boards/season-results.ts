import { z } from 'zod';
import {
  type EnvironmentDefinition,
  EnvironmentError,
  type EpisodeRecord,
  type ResetOptions,
} from '../protocol/definition.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import { actionReader } from '../protocol/schemas.ts';
import { MAX_EPISODE_ACTIONS, replayRecord } from '../sessions/episode.ts';
import { publicName, skeletonOf } from './public-name.ts';
import { commitmentOf, type SeasonLedger, seasonRules, seedOf, taskId } from './season-ledger.ts';
import { receiptOf, receiptProblems } from './season-receipt.ts';

const RESULTS_FORMAT = 'openenv-season/2';

const anchor = z.object({
  return: z.number(),
  actions: z.array(z.unknown()).min(1).describe('The last one is repeated to the end of the episode'),
});
const anchors = z
  .object({ default: anchor, clairvoyant: anchor, constant: anchor.nullish() })
  .describe('Returns on the same traffic, each with actions that earn it');

const judgedEpisode = z.object({
  task_id: taskId,
  episode: z.int().min(0),
  seed: z.int().min(0),
  actions: z.array(z.unknown()).max(MAX_EPISODE_ACTIONS),
  digest: z.string().describe('Over all answers of the replay, as in episode files'),
  done: z.boolean(),
  return: z.number().describe('With what is lost for the windows that were not played'),
  score: z.number(),
  anchors: anchors.nullable(),
});

/** A season that is over: enough to check all of it. */
export const seasonResults = z.object({
  format: z.literal(RESULTS_FORMAT),
  season: seasonRules,
  secret: z.string(),
  submissions: z.array(
    z.object({
      number: z.int().min(1),
      name: publicName,
      receipt: z.string().describe('After its last action'),
      order: z
        .array(z.tuple([z.int().min(0), z.int().min(1)]))
        .describe('Runs of its actions as they were played: the index of an episode, and how many'),
      episodes: z.array(judgedEpisode),
    }),
  ),
});
export type SeasonResults = Readonly<z.infer<typeof seasonResults>>;
type JudgedEpisode = Readonly<z.infer<typeof judgedEpisode>>;
type SeasonAnchors = Readonly<z.infer<typeof anchors>>;

/** Judges the episodes of a season. Environments bring their own; `graderScoring` serves any that has a grader. */
export interface SeasonScoring {
  /** Anchors of these very episodes, `null` for an environment without any. Takes long. */
  anchors(resets: readonly ResetOptions[]): Promise<readonly (SeasonAnchors | null)[]>;
  /** Return and score of an episode that ended where its actions end. */
  judge(
    record: EpisodeRecord,
    anchors: SeasonAnchors | null,
  ): Promise<{ readonly return: number; readonly score: number }>;
}

/** Scores by the grader of an environment, without anchors. @throws EnvironmentError `NO_GRADER` */
export function graderScoring(definition: EnvironmentDefinition): SeasonScoring {
  if (!definition.grade) {
    const problem = `Expected an environment that grades its episodes; ${definition.id} does not.`;
    throw new EnvironmentError('NO_GRADER', problem);
  }
  return {
    anchors: async (resets) => resets.map(() => null),
    async judge(record) {
      const { score, breakdown } = await definition.grade!(record);
      const { return: graded } = breakdown;
      return {
        score,
        return: typeof graded === 'number' ? graded : (await replayRecord(definition, record)).return,
      };
    },
  };
}

/** Closes a season and judges all its episodes: those that were left, and those that were never opened, too. */
export async function closeSeason(
  ledger: SeasonLedger,
  definition: EnvironmentDefinition,
  scoring: SeasonScoring,
): Promise<SeasonResults> {
  ledger.closeSeason();
  const { rules, secret } = ledger;
  const readOptions = resetOptionsReader(definition);
  const played = ledger.submissions.flatMap(({ number }) =>
    ledger.episodesOf(number).map((episode) => ({
      ...episode,
      record: {
        reset: readOptions({ task_id: episode.task_id, seed: seedOf(secret, episode) }),
        actions: episode.actions,
      },
    })),
  );
  const anchors = await scoring.anchors(played.map(({ record }) => record.reset));
  const submissions = ledger.submissions.map(({ number, name, actions, digest }) => ({
    ...{ number, name, receipt: receiptOf(number, actions, digest), order: ledger.orderOf(number) },
    episodes: [] as JudgedEpisode[],
  }));
  for (const [index, { submission, task_id, episode, record }] of played.entries()) {
    const ofEpisode = anchors[index] ?? null;
    const { digest, done } = await replayRecord(definition, record);
    const about = { task_id, episode, seed: record.reset.seed!, actions: [...record.actions] };
    const score = await scoring.judge(record, ofEpisode);
    submissions[submission - 1].episodes.push({ ...about, digest, done, ...score, anchors: ofEpisode });
  }
  return { format: RESULTS_FORMAT, season: rules, secret, submissions };
}

/**
 * Checks results against the seeds, by replay: answers what is wrong, nothing when all is right. `commitment` is that which
 * was published when the season began, `receipts` are those that entrants kept; `anchorsAnew` computes the anchors and compares them, which else are only replayed.
 */
export async function verifySeason(
  { season, secret, submissions }: SeasonResults,
  definition: EnvironmentDefinition,
  scoring: SeasonScoring,
  {
    commitment,
    receipts = [],
    anchorsAnew,
  }: { commitment?: string | undefined; receipts?: readonly string[]; anchorsAnew?: boolean } = {},
): Promise<string[]> {
  const problems: string[] = [];
  if (commitmentOf(season, secret) !== season.commitment) {
    problems.push(`The secret and the rules are not those of the commitment ${season.commitment}.`);
  }
  if (commitment !== undefined && commitment !== season.commitment) {
    problems.push(`The commitment was ${commitment}, and is ${season.commitment} in the results.`);
  }
  const { id, version } = season.environment;
  if (definition.id !== id || definition.version !== version) {
    const other = `${definition.id} ${definition.version}`;
    return [...problems, `The season was played on ${id} ${version}, this is ${other}.`];
  }
  for (const [index, { number, name }] of submissions.entries()) {
    if (number !== index + 1)
      problems.push(`Expected submission ${index + 1}, got ${number}: one is missing.`);
    const first = submissions.find((other) => skeletonOf(other.name) === skeletonOf(name));
    if (first!.number < number) problems.push(`The names ${first!.name} and ${name} are, or look, the same.`);
  }
  problems.push(...receiptProblems(season.commitment, submissions, receipts));
  const readOptions = resetOptionsReader(definition);
  const readAction = actionReader(definition.action);
  const { task_ids, episodes: planned } = season;
  const expected = task_ids.flatMap((taskId) => Array.from({ length: planned }, (_, i) => `${taskId} ${i}`));
  for (const { number, name, episodes } of submissions) {
    if (episodes.map((each) => `${each.task_id} ${each.episode}`).join('\n') !== expected.join('\n')) {
      problems.push(`${name}: expected ${planned} episodes of each task, in order.`);
    }
    for (const judged of episodes) {
      for await (const problem of problemsOf(judged, number)) {
        problems.push(`${name}, ${judged.task_id} ${judged.episode}: ${problem}`);
      }
    }
  }
  if (anchorsAnew) problems.push(...(await anchorProblems()));
  return problems;

  async function* problemsOf(judged: JudgedEpisode, submission: number): AsyncGenerator<string> {
    const { task_id, seed, actions, anchors } = judged;
    if (seed !== seedOf(secret, { ...judged, submission })) {
      yield 'the seed does not come from the secret.';
    }
    try {
      const record = { reset: readOptions({ task_id, seed }), actions: actions.map(readAction) };
      const { digest, done } = await replayRecord(definition, record);
      if (digest !== judged.digest || done !== judged.done) yield 'the replay came out otherwise.';
      const { return: total, score } = await scoring.judge(record, anchors);
      if (total !== judged.return || score !== judged.score) {
        yield `expected return ${total} and score ${score}, got ${judged.return} and ${judged.score}.`;
      }
      for (const [name, claimed] of Object.entries(anchors ?? {})) {
        if (!claimed) continue;
        const earned = await repeatedReturn(definition, record.reset, claimed.actions.map(readAction));
        if (!isClose(earned, claimed.return)) yield `the ${name} earns ${earned}, not ${claimed.return}.`;
      }
    } catch (error) {
      yield `it cannot be replayed: ${(error as Error).message}`;
    }
  }

  async function anchorProblems(): Promise<string[]> {
    const judged = submissions.flatMap(({ name, episodes }) => episodes.map((each) => ({ name, ...each })));
    const anew = await scoring.anchors(judged.map(({ task_id, seed }) => readOptions({ task_id, seed })));
    const differ = judged.filter(({ anchors }, i) => JSON.stringify(anchors) !== JSON.stringify(anew[i]));
    const problem = 'the anchors are not those that are computed for its seed.';
    return differ.map(({ name, task_id, episode }) => `${name}, ${task_id} ${episode}: ${problem}`);
  }
}

/** Return of actions whose last one is repeated until the episode ends. */
async function repeatedReturn(
  definition: EnvironmentDefinition,
  reset: ResetOptions,
  actions: readonly unknown[],
): Promise<number> {
  const environment = definition.create();
  try {
    let { done } = await environment.reset(reset);
    let total = 0;
    for (let step = 0; !done && step < MAX_EPISODE_ACTIONS; step++) {
      const result = await environment.step(actions[Math.min(step, actions.length - 1)]);
      total += result.reward ?? 0;
      done = result.done;
    }
    return total;
  } finally {
    await environment.close?.();
  }
}

/** Sums of the same rewards in another order are equal but for rounding. */
function isClose(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
}
