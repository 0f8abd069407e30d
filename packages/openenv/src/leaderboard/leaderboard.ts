import { createHash } from 'node:crypto';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { EpisodeFile } from '../episodes/episode-file.ts';

/** Runs that a board keeps; the worst give way to better ones. */
export const RUNS_PER_BOARD = 100;
/** Boards (a version of an environment, a task and a scenario) that are kept; those that were used longest ago give way. */
const BOARDS = 100;
/** In the place of a task, for environments without tasks. */
const NO_TASK = '';
/** Longer scenarios, as those with a trace of their own, are told by a digest, characters. */
const LONGEST_SCENARIO = 300;
const LOCK_TIMEOUT_MS = 2000;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS leaderboard_run (
  id INTEGER PRIMARY KEY,
  environment TEXT NOT NULL,
  task TEXT NOT NULL,
  scenario TEXT NOT NULL,
  name TEXT NOT NULL,
  seed INTEGER NOT NULL,
  score REAL,
  return REAL NOT NULL,
  windows INTEGER NOT NULL,
  digest TEXT NOT NULL,
  episode TEXT NOT NULL,
  saved_at INTEGER NOT NULL,
  UNIQUE (environment, task, scenario, name, digest)
) STRICT;
CREATE INDEX IF NOT EXISTS leaderboard_run_rank ON leaderboard_run (environment, task, scenario, score DESC, return DESC);
`;

/** A run that is to be saved. It has been replayed: its numbers are the server's own. */
export interface FinishedRun {
  /** Who played it, in the words of the one who saved it. */
  readonly name: string;
  readonly score: number | null;
  readonly return: number;
  readonly windows: number;
  readonly episode: EpisodeFile;
}

/** A saved run as lists show it. */
export interface LeaderboardEntry {
  readonly id: number;
  /** From 1; runs of equal score are ordered by return, then by age. */
  readonly rank: number;
  readonly name: string;
  readonly task_id: string | null;
  /** The other options of the reset as JSON, or a digest of it where it is long; empty without any. */
  readonly scenario: string;
  readonly seed: number;
  /** In (0, 1); `null` where the environment has no grader. */
  readonly score: number | null;
  readonly return: number;
  readonly windows: number;
  readonly digest: string;
  /** Milliseconds since the epoch. */
  readonly saved_at: number;
}

export interface LeaderboardFilter {
  readonly taskId?: string | undefined;
  readonly seed?: number | undefined;
}

/**
 * The best runs of each environment version, task and scenario, in SQLite. Bounded: `RUNS_PER_BOARD` a board. May share the file
 * of the sessions.
 */
export class Leaderboard {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;

  /** @param path a file, or `:memory:` @throws the database's error when it cannot be opened */
  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS });
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    this.#database.exec(SCHEMA);
    this.#statements = prepareStatements(this.#database);
  }

  /** Saves a run. Saving it again under the same name changes nothing. `undefined` when it does not reach the board. */
  save(run: FinishedRun): LeaderboardEntry | undefined {
    const { add, prune, pruneBoards } = this.#statements;
    const { reset, digest } = run.episode;
    const environment = nameOf(run.episode.environment);
    const task = String(reset.task_id ?? NO_TASK);
    const scenario = scenarioOf(reset);
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      add.run(
        environment,
        task,
        scenario,
        run.name,
        Number(reset.seed ?? 0),
        run.score,
        run.return,
        run.windows,
        digest,
        JSON.stringify(run.episode),
        Date.now(),
      );
      prune.run(environment, task, scenario, environment, task, scenario);
      pruneBoards.run();
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
    return this.list(run.episode.environment, { taskId: task }).find(
      (entry) => entry.digest === digest && entry.name === run.name,
    );
  }

  /** The runs of an environment's version, the best of each task first; of one task or seed where it is given. */
  list(
    environment: EpisodeFile['environment'],
    { taskId, seed }: LeaderboardFilter = {},
  ): LeaderboardEntry[] {
    const rows = this.#statements.list.all(nameOf(environment)) as unknown as LeaderboardEntry[];
    return rows.filter(
      (row) =>
        (taskId === undefined || (row.task_id ?? NO_TASK) === taskId) &&
        (seed === undefined || row.seed === seed),
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

/** What is played beside the task, apart from the seed: runs are only held against runs of the same. */
function scenarioOf({ task_id, seed, episode_id, ...options }: EpisodeFile['reset']): string {
  const entries = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return '';
  const text = JSON.stringify(Object.fromEntries(entries));
  if (text.length <= LONGEST_SCENARIO) return text;
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function prepareStatements(database: DatabaseSync) {
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  const order = 'score DESC, return DESC, id';
  return {
    add: prepare(
      'INSERT INTO leaderboard_run (environment, task, scenario, name, seed, score, return, windows, digest, episode, saved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    prune: prepare(
      `DELETE FROM leaderboard_run WHERE environment = ? AND task = ? AND scenario = ? AND id NOT IN
         (SELECT id FROM leaderboard_run WHERE environment = ? AND task = ? AND scenario = ? ORDER BY ${order} LIMIT ${RUNS_PER_BOARD})`,
    ),
    pruneBoards: prepare(
      `DELETE FROM leaderboard_run WHERE (environment, task, scenario) NOT IN
         (SELECT environment, task, scenario FROM leaderboard_run GROUP BY environment, task, scenario ORDER BY max(id) DESC LIMIT ${BOARDS})`,
    ),
    list: prepare(
      `SELECT id, row_number() OVER (PARTITION BY task, scenario ORDER BY ${order}) AS rank, name, nullif(task, '${NO_TASK}') AS task_id,
         scenario, seed, score, return, windows, digest, saved_at
       FROM leaderboard_run WHERE environment = ? ORDER BY task, scenario, ${order}`,
    ),
    episode: prepare('SELECT episode, name FROM leaderboard_run WHERE id = ?'),
  };
}
