import { z } from 'zod';
import { type EnvironmentDefinition, EnvironmentError } from '../definition.ts';
import { episodeFileSchema } from '../episodes/episode-file.ts';
import { episodeFile, replayRecord } from '../episodes/replay-episode.ts';
import { RateLimiter, type RateLimitOptions } from '../guard/rate-limiter.ts';
import type { OpenEnvServer } from '../server/create-server.ts';
import { HttpProblem } from '../server/http-problem.ts';
import { Leaderboard, leaderboardEntry, RUNS_PER_BOARD, RUNS_PER_CLIENT } from './leaderboard.ts';

/** Runs that a client may save. */
const SAVES: RateLimitOptions = { requests: 60, perMs: 60_000 };

const saveRequest = z
  .strictObject({
    session_id: z
      .string()
      .max(255)
      .nullish()
      .meta({ description: "The session whose episode is saved; without one, the caller's latest" }),
    name: z
      .string()
      .trim()
      .min(1)
      .max(60)
      .regex(/^[^\p{Cc}]*$/u, 'Expected a name without control characters')
      .meta({ description: 'Who played it' }),
  })
  .meta({ title: 'SaveRunRequest', examples: [{ name: 'Ada' }] });

/** Said beside every list: a rank here is no proof. */
const PRACTICE_NOTE =
  'Practice: any seed, any tool, as often as you like. A rank here proves nothing; ranked seasons do.';

const listQuery = z.object({
  task_id: z.string().max(200).optional().meta({ description: 'Only runs of this task' }),
  seed: z.coerce.number().int().optional().meta({ description: 'Only runs on this seed' }),
  split: z.string().max(200).optional().meta({ description: 'Only runs on seeds of this split' }),
});

/**
 * The leaderboard of practice: `GET /leaderboard` lists the best runs of this version, `POST /leaderboard` saves a finished episode,
 * which the server replays and grades itself, and `GET /leaderboard/{id}` gives the episode of a run as a file. Only for
 * environments that can be replayed.
 * @param path a SQLite file, which may be that of the sessions, or `:memory:`. It is closed with the server.
 * @throws the database's error when it cannot be opened
 */
export function mountLeaderboardRoutes<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  path: string,
): void {
  const definition = server.definition as unknown as EnvironmentDefinition<unknown, object, object>;
  const leaderboard = new Leaderboard(path, { splitOf: definition.splitOf });
  server.onClose(() => leaderboard.close());
  const saves = new RateLimiter(SAVES);

  server.addRoute(
    {
      method: 'get',
      path: '/leaderboard',
      operationId: 'list_leaderboard_get',
      tag: 'Leaderboard',
      summary: 'The best practice runs of this version of the environment',
      description: `Each task, scenario and seed has a board of its own. ${PRACTICE_NOTE}`,
      query: listQuery,
      answer: z.object({ note: z.string(), entries: z.array(leaderboardEntry) }),
      errors: { 422: 'Invalid query' },
    },
    (_, { query: { task_id: taskId, seed, split } }) => ({
      note: PRACTICE_NOTE,
      entries: leaderboard.list(definition, { taskId, seed, split }),
    }),
  );

  server.addRoute(
    {
      method: 'post',
      path: '/leaderboard',
      operationId: 'save_run_post',
      tag: 'Leaderboard',
      summary: 'Save a finished episode',
      description: `The server replays and grades the episode. A scenario keeps the ${RUNS_PER_BOARD} best runs of each seed, at most ${RUNS_PER_CLIENT} of a client; \`entry\` is \`null\` for a run that is not among them.`,
      body: saveRequest,
      answer: z.object({ entry: leaderboardEntry.nullable() }),
      errors: {
        404: 'Unknown session',
        409: 'No episode was started (`NOT_RESET`), or it is not over (`EPISODE_NOT_OVER`)',
        422: 'Invalid body',
        429: 'Too many runs of the client (`RATE_LIMITED`)',
        503: 'The run cannot be written now (`STORE_ERROR`)',
      },
    },
    async (context, { body: { session_id, name } }) => {
      const client = server.callerOf(context).name;
      const waitMs = saves.take(client);
      if (waitMs > 0) {
        context.header('retry-after', String(Math.ceil(waitMs / 1000)));
        throw new HttpProblem(429, `Too many runs: ${saves.description}. Try again later.`, 'RATE_LIMITED');
      }
      const live = (await server.sessionOf(context, session_id))?.record;
      if (!live) throw new EnvironmentError('NOT_RESET', 'There is no episode to save. POST /reset first.');
      const record = { reset: live.reset, actions: [...live.actions] };
      const replayed = await replayRecord(definition as EnvironmentDefinition, record, client);
      if (!replayed.done) {
        throw new HttpProblem(
          409,
          `The episode is not over after ${record.actions.length} windows. Play it to its end, then save it.`,
          'EPISODE_NOT_OVER',
        );
      }
      const grade = await definition.grade?.(record, server.callerOf(context));
      const entry = await leaderboard.save({
        name,
        client,
        score: grade && !grade.estimated ? grade.score : null,
        return: replayed.return,
        windows: record.actions.length,
        episode: episodeFile(definition, record, replayed.digest),
      });
      return { entry: entry ?? null };
    },
  );

  server.addRoute(
    {
      method: 'get',
      path: '/leaderboard/{id}',
      operationId: 'get_run',
      tag: 'Leaderboard',
      summary: 'The episode of a saved run as a file',
      parameters: z.object({ id: z.coerce.number().int().min(1) }),
      answer: episodeFileSchema,
      errors: { 404: 'Unknown run (`UNKNOWN_RUN`)' },
    },
    (_, { parameters: { id } }) => {
      const episode = leaderboard.episode(id);
      if (!episode) {
        throw new HttpProblem(
          404,
          'No run has this id: it may have given way to better ones.',
          'UNKNOWN_RUN',
        );
      }
      return episode;
    },
  );
}
