import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type EnvironmentDefinition, EnvironmentError } from '../protocol/definition.ts';
import { readJson } from '../protocol/read-json.ts';
import { invalidInput } from '../protocol/schemas.ts';
import type { OpenEnvServer } from '../server/create-server.ts';
import { RateLimiter, type RateLimitOptions } from '../server/guard.ts';
import { described, httpProblem, sessionIdSchema } from '../server/route-table.ts';
import { type EpisodeFile, episodeFile, episodeFileSchema, replayRecord } from '../sessions/episode.ts';
import { storeError } from '../sessions/session-store.ts';
import { reasonOf, SqliteFile } from '../sessions/sqlite-file.ts';
import { checkSqliteStore } from '../sessions/sqlite-session-store.ts';
import { publicName } from './public-name.ts';

/** Runs that a board keeps; the worst give way to better ones. */
export const RUNS_PER_BOARD = 100;
/** Runs that one client may have on a board. */
export const RUNS_PER_CLIENT = 20;
/** Boards that are kept, in all and with runs of one client; those with the best runs stay. */
const BOARDS = 1000;
const BOARDS_PER_CLIENT = 20;
/** Length of all episodes of a client, characters; the best runs stay. */
const BYTES_PER_CLIENT = 16 * 2 ** 20;
/** Most runs of a page, and runs that are looked at for one. */
const RUNS_PER_PAGE = 100;
const MOST_EXAMINED = 2000;
const LEAST_SEED = Number.MIN_SAFE_INTEGER;
/** In the place of a task, for environments without tasks. */
const NO_TASK = '';
/** Longer scenarios, such as those with a trace of their own, are shown by a digest, characters. */
const MAX_SCENARIO_LENGTH = 300;

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

/** Columns of format 4, but for its key. */
const FORMER_COLUMNS =
  'environment, task, scenario, client, name, seed, score, return, windows, digest, episode, bytes, saved_at';

/** From each format of runs to the next. */
const STEPS = [
  "ALTER TABLE leaderboard ADD COLUMN scenario TEXT NOT NULL DEFAULT ''",
  'ALTER TABLE leaderboard RENAME TO leaderboard_run; DROP INDEX leaderboard_rank',
  `ALTER TABLE leaderboard_run ADD COLUMN client TEXT NOT NULL DEFAULT '';
   ALTER TABLE leaderboard_run ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
   UPDATE leaderboard_run SET bytes = length(episode)`,
  `ALTER TABLE leaderboard_run RENAME TO former_run; DROP INDEX IF EXISTS leaderboard_run_client; ${SCHEMA}
   INSERT INTO leaderboard_run (id, ${FORMER_COLUMNS}) SELECT id, ${FORMER_COLUMNS} FROM former_run; DROP TABLE former_run`,
];
const FORMER_FORMAT = `SELECT CASE
    WHEN EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'leaderboard_run_board') THEN 5
    WHEN EXISTS (SELECT 1 FROM pragma_table_info('leaderboard_run') WHERE name = 'client') THEN 4
    WHEN EXISTS (SELECT 1 FROM pragma_table_info('leaderboard_run')) THEN 3
    WHEN EXISTS (SELECT 1 FROM pragma_table_info('leaderboard') WHERE name = 'scenario') THEN 2
    WHEN EXISTS (SELECT 1 FROM pragma_table_info('leaderboard')) THEN 1
    ELSE 0 END AS format`;
const RUN_TABLES = { part: 'runs', schema: SCHEMA, steps: STEPS, formerFormat: FORMER_FORMAT };

/** Like `checkSqliteStore`, of a file that may hold the runs of a leaderboard beside the sessions. */
export const checkStore = (path: string) => checkSqliteStore(path, RUN_TABLES);

/** A run that is to be saved. It has been replayed: its numbers are the server's own. */
interface FinishedRun extends Pick<LeaderboardEntry, 'name' | 'score' | 'return' | 'windows'> {
  /** Digest of the client that saved it. */
  readonly client: string;
  readonly episode: EpisodeFile;
}

const leaderboardEntry = z.object({
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
type LeaderboardEntry = z.infer<typeof leaderboardEntry>;

interface LeaderboardOptions extends Pick<EnvironmentDefinition, 'splitOf'> {
  readonly lockTimeoutMs?: number;
  /** Default 1,000. */
  readonly boards?: number;
}

/**
 * The best runs of each environment version, task, scenario and seed, in SQLite: returns on other traffic are not
 * comparable. For practice only: anybody may try a seed as often as they like, with any tool. Bounded for each board and each client; the best runs
 * stay, whenever they came. May share the file of the sessions.
 */
export class Leaderboard {
  readonly #file: SqliteFile<keyof ReturnType<typeof leaderboardSql>>;
  readonly #splitOf: LeaderboardOptions['splitOf'];

  /** @param path a file, or `:memory:` @throws EnvironmentError `STORE_ERROR` when it cannot be opened */
  constructor(path: string, { lockTimeoutMs, boards = BOARDS, splitOf }: LeaderboardOptions = {}) {
    this.#splitOf = splitOf;
    try {
      this.#file = new SqliteFile(path, { ...RUN_TABLES, sql: leaderboardSql(boards) }, { lockTimeoutMs });
    } catch (error) {
      throw storeError(`Could not open the leaderboard in ${path}: ${reasonOf(error)}.`, error);
    }
  }

  /**
   * Saves a run. Saving it again under the same name changes nothing. `undefined` when it does not reach the board.
   * @throws EnvironmentError `STORE_ERROR` when the file cannot be written
   */
  async save(run: FinishedRun): Promise<LeaderboardEntry | undefined> {
    const { reset, digest, environment } = run.episode;
    try {
      await this.#file.retried(() => this.#file.transact(() => this.#write(run)));
    } catch (error) {
      throw storeError(`The run could not be saved: ${reasonOf(error)}.`, error);
    }
    const board = boardOf(reset);
    for (const entry of this.#from(nameOf(environment), board)) {
      if (!isSameBoard(entry, board)) break;
      if (entry.digest === digest && entry.name === run.name) return entry;
    }
    return undefined;
  }

  #write(run: FinishedRun): void {
    const { add, pruneClient, pruneBoard, pruneBoardsOfClient, pruneBoards, pruneBytes } =
      this.#file.statements;
    const { client, name } = run;
    const { reset, digest } = run.episode;
    const environment = nameOf(run.episode.environment);
    const board = [environment, ...boardOf(reset)];
    const episode = JSON.stringify(run.episode);
    const values = [run.score, run.return, run.windows, digest, episode, episode.length];
    add.run(...board, client, name, ...values, Date.now());
    pruneClient.run(...board, client, ...board, client);
    pruneBoard.run(...board, ...board);
    pruneBoardsOfClient.run(client, client);
    pruneBoards.run();
    pruneBytes.run(client);
  }

  /**
   * A page of the runs of an environment's version, the best of each board first; of one task, seed or split where it is
   * given. It looks at no more than `MOST_EXAMINED` runs: one with `next` may be short.
   * @throws EnvironmentError `VALIDATION_ERROR` for an `after` that was no `next`
   */
  list(
    environment: EpisodeFile['environment'],
    { task_id: task, seed, split, limit = RUNS_PER_PAGE, after }: Partial<z.infer<typeof listQuery>> = {},
  ): { readonly entries: LeaderboardEntry[]; readonly next: string | null } {
    const [rank, ...board] = after === undefined ? [0, task ?? NO_TASK, '', LEAST_SEED] : readPlace(after);
    const entries: LeaderboardEntry[] = [];
    let examined = 0;
    for (const entry of this.#from(nameOf(environment), board)) {
      if (task !== undefined && (entry.task_id ?? NO_TASK) !== task) break;
      if (entry.rank <= rank && isSameBoard(entry, board)) continue;
      const isWanted = seed === undefined || entry.seed === seed;
      if (isWanted && (split === undefined || entry.split === split)) entries.push(entry);
      if (++examined >= MOST_EXAMINED || entries.length >= limit) return { entries, next: placeOf(entry) };
    }
    return { entries, next: null };
  }

  /** All runs from the best of a board on. */
  *#from(environment: string, board: Board): Generator<LeaderboardEntry> {
    let last: LeaderboardEntry | undefined;
    for (const row of this.#file.statements.from.iterate(environment, ...board)) {
      const run = row as Omit<LeaderboardEntry, 'split' | 'rank'>;
      const { task_id, scenario, seed } = run;
      const isNext = last !== undefined && isSameBoard(last, [task_id ?? NO_TASK, scenario, seed]);
      const split = this.#splitOf?.({ task_id, seed }) ?? null;
      last = { ...run, rank: isNext ? last!.rank + 1 : 1, split };
      yield last;
    }
  }

  /** The episode of a saved run, with the run's name as its author. */
  episode(id: number): EpisodeFile | undefined {
    const row = this.#file.statements.episode.get(id) as { episode: string; name: string } | undefined;
    return row && { ...JSON.parse(row.episode), author: row.name };
  }

  /** Closes the file. */
  close(): void {
    this.#file.close();
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

type Board = readonly [task: string, scenario: string, seed: number];

function boardOf(reset: EpisodeFile['reset']): Board {
  return [String(reset.task_id ?? NO_TASK), scenarioOf(reset), Number(reset.seed ?? 0)];
}

function isSameBoard({ task_id, scenario, seed }: LeaderboardEntry, board: Board): boolean {
  return (task_id ?? NO_TASK) === board[0] && scenario === board[1] && seed === board[2];
}

const place = z.tuple([z.int(), z.string(), z.string(), z.int()]);

/** The place of a run in the list, as text. */
function placeOf({ rank, task_id, scenario, seed }: LeaderboardEntry): string {
  return Buffer.from(JSON.stringify([rank, task_id ?? NO_TASK, scenario, seed])).toString('base64url');
}

function readPlace(text: string): z.infer<typeof place> {
  const reading = readJson(Buffer.from(text, 'base64url').toString());
  const read = place.safeParse(reading.ok ? reading.value : null);
  if (read.success) return read.data;
  throw invalidInput('value_error', ['query', 'after'], 'Expected the `next` of the page before', text);
}

/** @param boards that are kept in all */
function leaderboardSql(boards: number) {
  const order = 'score DESC, return DESC, id';
  const board = 'environment, task, scenario, seed';
  const onBoard = 'environment = ? AND task = ? AND scenario = ? AND seed = ?';
  const prune = (where: string, most: number) =>
    `DELETE FROM leaderboard_run WHERE ${where} AND id NOT IN
       (SELECT id FROM leaderboard_run WHERE ${where} ORDER BY ${order} LIMIT ${most})`;
  const bestBoards = (where: string, most: number) =>
    `(${board}) NOT IN (SELECT ${board} FROM leaderboard_run ${where} GROUP BY ${board}
        ORDER BY max(score) DESC, max(return) DESC, min(id) LIMIT ${most})`;
  return {
    add: `INSERT INTO leaderboard_run (${board}, client, name, score, return, windows, digest, episode, bytes, saved_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    pruneClient: prune(`${onBoard} AND client = ?`, RUNS_PER_CLIENT),
    pruneBoard: prune(onBoard, RUNS_PER_BOARD),
    pruneBoardsOfClient: `DELETE FROM leaderboard_run WHERE client = ? AND ${bestBoards('WHERE client = ?', BOARDS_PER_CLIENT)}`,
    pruneBoards: `DELETE FROM leaderboard_run WHERE ${bestBoards('', boards)}`,
    pruneBytes: `DELETE FROM leaderboard_run WHERE id IN (
         SELECT id FROM (
           SELECT id, sum(bytes) OVER (ORDER BY ${order}) AS total FROM leaderboard_run WHERE client = ?
         ) WHERE total > ${BYTES_PER_CLIENT})`,
    from: `SELECT id, name, nullif(task, '${NO_TASK}') AS task_id, scenario, seed, score, return, windows, digest, saved_at
       FROM leaderboard_run WHERE environment = ? AND (task, scenario, seed) >= (?, ?, ?) ORDER BY task, scenario, seed, ${order}`,
    episode: 'SELECT name, episode FROM leaderboard_run WHERE id = ?',
  };
}

/** Runs that a client may save. */
const SAVES: RateLimitOptions = { requests: 60, perMs: 60_000 };

const saveRequest = z
  .strictObject({
    session_id: sessionIdSchema("The session whose episode is saved; without one, the caller's latest"),
    name: publicName.meta({ description: 'Who played it' }),
  })
  .meta({ title: 'SaveRunRequest', examples: [{ name: 'Ada' }] });

/** Said beside every list: a rank here is no proof. */
const PRACTICE_NOTE =
  'Practice: any seed, any tool, as often as you like. A rank here proves nothing; ranked seasons do.';

const listQuery = z.object({
  task_id: z.string().max(200).optional().meta({ description: 'Only runs of this task' }),
  seed: z.coerce.number().int().optional().meta({ description: 'Only runs on this seed' }),
  split: z.string().max(200).optional().meta({ description: 'Only runs on seeds of this split' }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(RUNS_PER_PAGE)
    .default(RUNS_PER_PAGE)
    .meta({ description: 'Most runs of the answer' }),
  after: z.string().max(2000).optional().meta({ description: '`next` of the page before' }),
});

/**
 * The leaderboard of practice: `GET /leaderboard` lists the best runs of this version, `POST /leaderboard` saves a finished episode,
 * which the server replays and grades itself, and `GET /leaderboard/{id}` gives the episode of a run as a file. Only for
 * environments that can be replayed.
 * @param path a SQLite file, which may be that of the sessions, or `:memory:`. It is closed with the server.
 * @throws EnvironmentError `STORE_ERROR` when it cannot be opened
 */
export function mountLeaderboardRoutes(server: OpenEnvServer, path: string): void {
  const { definition } = server;
  const leaderboard = new Leaderboard(path, { splitOf: definition.splitOf });
  server.onClose(() => leaderboard.close());
  const saves = new RateLimiter(SAVES);

  server.addRoute(
    {
      ...described('list_leaderboard_get'),
      description: `Each task, scenario and seed has a board of its own. ${PRACTICE_NOTE}`,
      query: listQuery,
      answer: z.object({
        note: z.string(),
        entries: z.array(leaderboardEntry),
        next: z.string().nullable().meta({
          description: '`after` of the next page, also where this one is short; null on the last',
        }),
      }),
    },
    (_, { query }) => ({ note: PRACTICE_NOTE, ...leaderboard.list(definition, query) }),
  );

  server.addRoute(
    {
      ...described('save_run_post'),
      description: `The server replays and grades the episode. A scenario keeps the ${RUNS_PER_BOARD} best runs of each seed, at most ${RUNS_PER_CLIENT} of a client; \`entry\` is \`null\` for a run that is not among them.`,
      body: saveRequest,
      answer: z.object({ entry: leaderboardEntry.nullable() }),
    },
    async (context, { body: { session_id, name } }) => {
      const client = server.requestSessions.caller(context).name;
      const waitMs = saves.take(client);
      if (waitMs > 0) {
        context.header('retry-after', String(Math.ceil(waitMs / 1000)));
        throw httpProblem(429, `Too many runs: ${saves.description}. Try again later.`, 'RATE_LIMITED');
      }
      const live = (await server.requestSessions.of(context, session_id))?.record;
      if (!live) throw new EnvironmentError('NOT_RESET', 'There is no episode to save. POST /reset first.');
      const record = { reset: live.reset, actions: [...live.actions] };
      const replayed = await replayRecord(definition, record, client);
      if (!replayed.done) {
        const detail = `The episode is not over after ${record.actions.length} windows. Play it to its end, then save it.`;
        throw httpProblem(409, detail, 'EPISODE_NOT_OVER');
      }
      const grade = await definition.grade?.(record, server.requestSessions.caller(context));
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
      ...described('get_run'),
      parameters: z.object({ id: z.coerce.number().int().min(1) }),
      answer: episodeFileSchema,
    },
    (_, { parameters: { id } }) => {
      const episode = leaderboard.episode(id);
      if (!episode) {
        throw httpProblem(404, 'No run has this id: it may have given way to better ones.', 'UNKNOWN_RUN');
      }
      return episode;
    },
  );
}
