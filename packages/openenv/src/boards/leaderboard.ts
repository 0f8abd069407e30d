import { createHash } from 'node:crypto';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { z } from 'zod';
import { type EnvironmentDefinition, EnvironmentError, type ResetOptions } from '../protocol/definition.ts';
import { OpenEnvError } from '../protocol/errors.ts';
import type { OpenEnvServer } from '../server/create-server.ts';
import { RateLimiter, type RateLimitOptions } from '../server/rate-limiter.ts';
import { HttpProblem } from '../server/route-table.ts';
import { type EpisodeFile, episodeFile, episodeFileSchema, replayRecord } from '../sessions/episode.ts';
import { reasonOf, retryWhileLocked } from '../sessions/sqlite-lock.ts';

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

/** Runs that a board keeps; the worst give way to better ones. */
export const RUNS_PER_BOARD = 100;
/** Runs that one client may have on a board. */
export const RUNS_PER_CLIENT = 20;
/** Boards that are kept, in all and with runs of one client; those with the best runs stay. */
const BOARDS = 1000;
const BOARDS_PER_CLIENT = 20;
/** Length of all episodes of a client, characters; the best runs stay. */
const BYTES_PER_CLIENT = 16 * 2 ** 20;
/** In the place of a task, for environments without tasks. */
const NO_TASK = '';
/** Longer scenarios, such as those with a trace of their own, are shown by a digest, characters. */
const MAX_SCENARIO_LENGTH = 300;
const LOCK_TIMEOUT_MS = 5000;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS leaderboard_run (
  id INTEGER PRIMARY KEY,
  environment TEXT NOT NULL,
  task TEXT NOT NULL,
  scenario TEXT NOT NULL,
  client TEXT NOT NULL,
  name TEXT NOT NULL,
  seed INTEGER NOT NULL,
  score REAL,
  return REAL NOT NULL,
  windows INTEGER NOT NULL,
  digest TEXT NOT NULL,
  episode TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  saved_at INTEGER NOT NULL,
  UNIQUE (environment, task, scenario, seed, name, digest)
) STRICT;
CREATE INDEX IF NOT EXISTS leaderboard_run_board ON leaderboard_run (environment, task, scenario, seed, score DESC, return DESC);
CREATE INDEX IF NOT EXISTS leaderboard_run_client ON leaderboard_run (client);
`;

/** A run that is to be saved. It has been replayed: its numbers are the server's own. */
export interface FinishedRun {
  /** Name of the player, given by the client that saved it. */
  readonly name: string;
  /** Digest of the client that saved it. */
  readonly client: string;
  /** `null` where the environment has no grader, and for a score that rests on an estimate. */
  readonly score: number | null;
  readonly return: number;
  readonly windows: number;
  readonly episode: EpisodeFile;
}

export const leaderboardEntry = z.object({
  id: z.int(),
  rank: z.int().min(1).meta({
    description:
      'Among the runs of the same task, options and seed. Runs of equal score are ordered by return, then by age',
  }),
  name: z.string(),
  task_id: z.string().nullable(),
  scenario: z.string().meta({
    description:
      'The other options of the reset as JSON, or a digest of it where it is long; empty without any',
  }),
  seed: z.int(),
  split: z.string().nullable().meta({ description: 'The split that the seed belongs to, where it does' }),
  score: z.number().nullable().meta({
    description: 'In (0, 1); null where the environment has no grader, or only estimates what scores rest on',
  }),
  return: z.number(),
  windows: z.int(),
  digest: z.string(),
  saved_at: z.int().meta({ description: 'Milliseconds since the epoch' }),
});
/** A saved run as lists show it. */
export type LeaderboardEntry = z.infer<typeof leaderboardEntry>;

/** Tells the split that a reset belongs to. */
export type SplitOf = (options: ResetOptions) => string | undefined;

export interface LeaderboardFilter {
  readonly taskId?: string | undefined;
  readonly seed?: number | undefined;
  readonly split?: string | undefined;
}

export interface LeaderboardOptions {
  readonly lockTimeoutMs?: number;
  /** Default 1,000. */
  readonly boards?: number;
  readonly splitOf?: SplitOf | undefined;
}

/**
 * The best runs of each environment version, task, scenario and seed, in SQLite: returns on other traffic are not
 * comparable. For practice only: anybody may try a seed as often as they like, with any tool. Bounded for each board and each client; the best runs
 * stay, whenever they came. May share the file of the sessions.
 */
export class Leaderboard {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #lockTimeoutMs: number;
  readonly #splitOf: SplitOf;

  /** @param path a file, or `:memory:` @throws the database's error when it cannot be opened */
  constructor(
    path: string,
    { lockTimeoutMs = LOCK_TIMEOUT_MS, boards = BOARDS, splitOf }: LeaderboardOptions = {},
  ) {
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#splitOf = splitOf ?? (() => undefined);
    this.#database = new DatabaseSync(path, { timeout: lockTimeoutMs });
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    this.#database.exec(SCHEMA);
    // From here on waiting for a lock must not stop the event loop: transactions are tried again instead.
    this.#database.exec('PRAGMA busy_timeout = 0');
    this.#statements = prepareStatements(this.#database, boards);
  }

  /**
   * Saves a run. Saving it again under the same name changes nothing. `undefined` when it does not reach the board.
   * @throws OpenEnvError `STORE_ERROR` when the file cannot be written
   */
  async save(run: FinishedRun): Promise<LeaderboardEntry | undefined> {
    const { reset, digest } = run.episode;
    try {
      await retryWhileLocked(this.#lockTimeoutMs, () => this.#write(run));
    } catch (error) {
      throw new OpenEnvError(
        'STORE_ERROR',
        { problem: `The run could not be saved: ${reasonOf(error)}.` },
        { cause: error },
      );
    }
    return this.list(run.episode.environment, { taskId: taskOf(reset) }).find(
      (entry) => entry.digest === digest && entry.name === run.name,
    );
  }

  #write(run: FinishedRun): void {
    const { add, pruneClient, pruneBoard, pruneBoardsOfClient, pruneBoards, pruneBytes } = this.#statements;
    const { reset, digest } = run.episode;
    const environment = nameOf(run.episode.environment);
    const board = [environment, taskOf(reset), scenarioOf(reset), Number(reset.seed ?? 0)] as const;
    const { client, name } = run;
    const episode = JSON.stringify(run.episode);
    const values = [run.score, run.return, run.windows, digest, episode] as const;
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      add.run(...board, client, name, ...values, episode.length, Date.now());
      pruneClient.run(...board, client, ...board, client);
      pruneBoard.run(...board, ...board);
      pruneBoardsOfClient.run(client, client);
      pruneBoards.run();
      pruneBytes.run(client);
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  /** The runs of an environment's version, the best of each board first; of one task, seed or split where it is given. */
  list(
    environment: EpisodeFile['environment'],
    { taskId, seed, split }: LeaderboardFilter = {},
  ): LeaderboardEntry[] {
    const rows = this.#statements.list.all(nameOf(environment)) as unknown as Omit<
      LeaderboardEntry,
      'split'
    >[];
    return rows
      .map((row) => ({ ...row, split: this.#splitOf({ task_id: row.task_id, seed: row.seed }) ?? null }))
      .filter(
        (row) =>
          (taskId === undefined || (row.task_id ?? NO_TASK) === taskId) &&
          (seed === undefined || row.seed === seed) &&
          (split === undefined || row.split === split),
      );
  }

  /** The episode of a saved run, with the run's name as its author. */
  episode(id: number): EpisodeFile | undefined {
    const row = this.#statements.episode.get(id) as { episode: string; name: string } | undefined;
    return row && { ...JSON.parse(row.episode), author: row.name };
  }

  /** Closes the file. */
  close(): void {
    this.#database.close();
  }
}

function nameOf({ id, version }: EpisodeFile['environment']): string {
  return `${id} ${version}`;
}

/** The options beside task and seed. Runs are compared with runs of the same scenario only. */
function scenarioOf({ task_id, seed, episode_id, ...options }: EpisodeFile['reset']): string {
  const entries = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return '';
  const text = JSON.stringify(Object.fromEntries(entries));
  if (text.length <= MAX_SCENARIO_LENGTH) return text;
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function taskOf(reset: EpisodeFile['reset']): string {
  return String(reset.task_id ?? NO_TASK);
}

function prepareStatements(database: DatabaseSync, boards: number) {
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  const order = 'score DESC, return DESC, id';
  const board = 'environment, task, scenario, seed';
  const onBoard = 'environment = ? AND task = ? AND scenario = ? AND seed = ?';
  const bestBoards = (where: string, most: number) =>
    `(${board}) NOT IN (SELECT ${board} FROM leaderboard_run ${where} GROUP BY ${board}
        ORDER BY max(score) DESC, max(return) DESC, min(id) LIMIT ${most})`;
  return {
    add: prepare(
      `INSERT INTO leaderboard_run (${board}, client, name, score, return, windows, digest, episode, bytes, saved_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ),
    pruneClient: prepare(
      `DELETE FROM leaderboard_run WHERE ${onBoard} AND client = ? AND id NOT IN
         (SELECT id FROM leaderboard_run WHERE ${onBoard} AND client = ? ORDER BY ${order} LIMIT ${RUNS_PER_CLIENT})`,
    ),
    pruneBoard: prepare(
      `DELETE FROM leaderboard_run WHERE ${onBoard} AND id NOT IN
         (SELECT id FROM leaderboard_run WHERE ${onBoard} ORDER BY ${order} LIMIT ${RUNS_PER_BOARD})`,
    ),
    pruneBoardsOfClient: prepare(
      `DELETE FROM leaderboard_run WHERE client = ? AND ${bestBoards('WHERE client = ?', BOARDS_PER_CLIENT)}`,
    ),
    pruneBoards: prepare(`DELETE FROM leaderboard_run WHERE ${bestBoards('', boards)}`),
    pruneBytes: prepare(
      `DELETE FROM leaderboard_run WHERE id IN (
         SELECT id FROM (
           SELECT id, sum(bytes) OVER (ORDER BY ${order}) AS total FROM leaderboard_run WHERE client = ?
         ) WHERE total > ${BYTES_PER_CLIENT})`,
    ),
    list: prepare(
      `SELECT id, row_number() OVER (PARTITION BY task, scenario, seed ORDER BY ${order}) AS rank, name, nullif(task, '${NO_TASK}') AS task_id,
         scenario, seed, score, return, windows, digest, saved_at
       FROM leaderboard_run WHERE environment = ? ORDER BY task, scenario, seed, ${order}`,
    ),
    episode: prepare('SELECT name, episode FROM leaderboard_run WHERE id = ?'),
  };
}
