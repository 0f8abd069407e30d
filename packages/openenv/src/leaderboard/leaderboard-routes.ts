import { z } from 'zod';
import { type EnvironmentDefinition, EnvironmentError } from '../definition.ts';
import { episodeFileSchema } from '../episodes/episode-file.ts';
import { episodeFile, replayRecord } from '../episodes/replay-episode.ts';
import { RateLimiter, type RateLimitOptions } from '../guard/rate-limiter.ts';
import { toJsonSchema } from '../input/json-schemas.ts';
import type { OpenEnvServer } from '../server/create-server.ts';
import { HttpProblem } from '../server/http-problem.ts';
import { requestBody } from '../server/request-body.ts';
import { type Leaderboard, RUNS_PER_BOARD, RUNS_PER_CLIENT } from './leaderboard.ts';

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

const listQuery = z.object({
  task_id: z.string().max(200).optional(),
  seed: z.coerce.number().int().optional(),
});

const entrySchema = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    rank: { type: 'integer', minimum: 1 },
    name: { type: 'string' },
    task_id: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    scenario: {
      type: 'string',
      description:
        'The other options of the reset as JSON, or a digest of it where it is long; empty without any',
    },
    seed: { type: 'integer' },
    score: { anyOf: [{ type: 'number' }, { type: 'null' }] },
    return: { type: 'number' },
    windows: { type: 'integer' },
    digest: { type: 'string' },
    saved_at: { type: 'integer', description: 'Milliseconds since the epoch' },
  },
  required: [
    'id',
    'rank',
    'name',
    'task_id',
    'scenario',
    'seed',
    'score',
    'return',
    'windows',
    'digest',
    'saved_at',
  ],
};

/**
 * The leaderboard: `GET /leaderboard` lists the best runs of this version, `POST /leaderboard` saves a finished episode,
 * which the server replays and grades itself, and `GET /leaderboard/{id}` gives the episode of a run as a file. Only for
 * environments that can be replayed.
 */
export function mountLeaderboardRoutes<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  leaderboard: Leaderboard,
): void {
  const { app } = server;
  const saves = new RateLimiter(SAVES);
  const definition = server.definition as unknown as EnvironmentDefinition<unknown, object, object>;

  app.get('/leaderboard', (context) => {
    const query = listQuery.safeParse(context.req.query());
    if (!query.success) {
      throw new HttpProblem(422, 'Expected `seed` to be a whole number and `task_id` a task of GET /tasks.');
    }
    const { task_id: taskId, seed } = query.data;
    return context.json({ entries: leaderboard.list(definition, { taskId, seed }) });
  });

  app.post('/leaderboard', async (context) => {
    const { session_id, name } = await requestBody(context, saveRequest);
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
      score: grade?.score ?? null,
      return: replayed.return,
      windows: record.actions.length,
      episode: episodeFile(definition, record, replayed.digest),
    });
    return context.json({ entry: entry ?? null });
  });

  app.get('/leaderboard/:id{[0-9]{1,15}}', (context) => {
    const episode = leaderboard.episode(Number(context.req.param('id')));
    if (!episode) {
      throw new HttpProblem(404, 'No run has this id: it may have given way to better ones.', 'UNKNOWN_RUN');
    }
    return context.json(episode);
  });

  describe(server);
}

function describe(server: Pick<OpenEnvServer, 'describeRoute'>): void {
  server.describeRoute({
    method: 'get',
    path: '/leaderboard',
    operationId: 'list_leaderboard_get',
    tag: 'Leaderboard',
    summary: 'The best runs of this version of the environment',
    query: [
      { name: 'task_id', description: 'Only runs of this task' },
      { name: 'seed', description: 'Only runs on this seed' },
    ],
    response: {
      type: 'object',
      properties: { entries: { type: 'array', items: entrySchema } },
      required: ['entries'],
    },
    errors: { 422: 'Invalid query' },
  });
  server.describeRoute({
    method: 'post',
    path: '/leaderboard',
    operationId: 'save_run_post',
    tag: 'Leaderboard',
    summary: 'Save a finished episode',
    description: `The server replays and grades the episode. A scenario keeps its ${RUNS_PER_BOARD} best runs, at most ${RUNS_PER_CLIENT} of a client; \`entry\` is \`null\` for a run that is not among them.`,
    request: saveRequest,
    response: {
      type: 'object',
      properties: { entry: { anyOf: [entrySchema, { type: 'null' }] } },
      required: ['entry'],
    },
    errors: {
      404: 'Unknown session',
      409: 'No episode was started (`NOT_RESET`), or it is not over (`EPISODE_NOT_OVER`)',
      422: 'Invalid body',
      429: 'Too many runs of the client (`RATE_LIMITED`)',
      503: 'The run cannot be written now (`STORE_ERROR`)',
    },
  });
  server.describeRoute({
    method: 'get',
    path: '/leaderboard/{id}',
    operationId: 'get_run',
    tag: 'Leaderboard',
    summary: 'The episode of a saved run as a file',
    response: toJsonSchema(episodeFileSchema, 'output'),
    parameters: { id: { type: 'integer', minimum: 1 } },
    errors: { 404: 'Unknown run (`UNKNOWN_RUN`)' },
  });
}
