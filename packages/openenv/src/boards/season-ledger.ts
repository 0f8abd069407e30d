import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { EnvironmentError, type ResetOptions } from '../protocol/definition.ts';
import {
  type SessionJournal,
  type SessionStore,
  type StoredSession,
  storedSession,
  storeError,
} from '../sessions/session-store.ts';
import { isBusy, reasonOf, SqliteFile, type StoredTables } from '../sessions/sqlite-file.ts';
import { publicName, readName, skeletonOf } from './public-name.ts';
import { actionDigest, admissionDigest, receiptOf, sha256 } from './season-receipt.ts';

/** Fewest episodes of each task that a submission is judged by. */
export const LEAST_EPISODES = 20;

export const taskId = z.union([z.string(), z.number()]);
export type TaskId = z.infer<typeof taskId>;

export const seasonRules = z.strictObject({
  name: publicName,
  environment: z.strictObject({ id: z.string(), version: z.string() }),
  task_ids: z.array(taskId).min(1),
  episodes: z.int().min(LEAST_EPISODES).describe('Episodes of each task, for each submission'),
  minutes: z
    .number()
    .gt(0)
    .describe('Time from the reset of an episode after which it takes no more actions'),
  created_at: z.int().describe('Milliseconds since the epoch'),
  commitment: z
    .string()
    .describe(
      'SHA-256 of these rules and of the secret that all seeds come from, which is published at the end',
    ),
});
/** Public rules of a season, known from its beginning. */
export type SeasonRules = Readonly<z.infer<typeof seasonRules>>;

/** One episode of a season. */
export interface SeasonEpisode {
  /** Number of the submission, from 1, in the order of admission. */
  readonly submission: number;
  readonly task_id: TaskId;
  /** From 0. */
  readonly episode: number;
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS season (
  one INTEGER PRIMARY KEY CHECK (one = 1), rules TEXT NOT NULL, secret TEXT NOT NULL, closed_at INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS submission (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL UNIQUE, admitted_at INTEGER NOT NULL,
  admission TEXT NOT NULL, actions INTEGER NOT NULL DEFAULT 0, digest TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS episode (
  key INTEGER PRIMARY KEY, submission INTEGER NOT NULL, task TEXT NOT NULL, episode INTEGER NOT NULL,
  opened_at INTEGER NOT NULL, session TEXT, client TEXT, episode_id TEXT, turn INTEGER, done INTEGER NOT NULL DEFAULT 0,
  UNIQUE (submission, task, episode)
) STRICT;
CREATE INDEX IF NOT EXISTS episode_session ON episode (session);
CREATE TABLE IF NOT EXISTS action (
  episode INTEGER NOT NULL, step INTEGER NOT NULL, text TEXT NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY (episode, step)
) STRICT, WITHOUT ROWID;
`;
const SQL = {
  create: 'INSERT INTO season (one, rules, secret) VALUES (1, ?, ?)',
  season: 'SELECT rules, secret, closed_at FROM season',
  closeSeason: 'UPDATE season SET closed_at = ?',
  admit:
    'INSERT INTO submission (number, name, token, admitted_at, admission, digest) VALUES (?, ?, ?, ?, ?, ?)',
  submission: 'SELECT number, name, admission, actions, digest FROM submission WHERE token = ?',
  submissions: 'SELECT number, name, admission, actions, digest FROM submission ORDER BY number',
  episodesOf:
    'SELECT key, episode, session, done FROM episode WHERE submission = ? AND task = ? ORDER BY episode',
  deal: `INSERT INTO episode (submission, task, episode, opened_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (submission, task, episode) DO UPDATE SET opened_at = excluded.opened_at RETURNING key`,
  answer: `UPDATE episode SET session = ?, client = ?, episode_id = ?,
         turn = (SELECT coalesce(max(turn), 0) + 1 FROM episode)
       WHERE submission = ? AND task = ? AND episode = ? RETURNING key`,
  finish: 'UPDATE episode SET done = 1 WHERE submission = ? AND task = ? AND episode = ?',
  ofSession: 'SELECT * FROM episode WHERE session = ? ORDER BY turn DESC LIMIT 1',
  playing: `SELECT number, task, episode, opened_at, actions, digest
       FROM episode JOIN submission ON number = submission WHERE key = ?`,
  saveAction: 'INSERT INTO action (episode, step, text, number) VALUES (?, ?, ?, ?)',
  saveDigest: 'UPDATE submission SET actions = ?, digest = ? WHERE number = ?',
  order: `SELECT task, episode.episode FROM action JOIN episode ON key = action.episode
       WHERE submission = ? ORDER BY action.number`,
  actions: 'SELECT text FROM action WHERE episode = ? ORDER BY step',
};
const TABLES: StoredTables<keyof typeof SQL> = {
  part: 'season',
  schema: SCHEMA,
  steps: [
    {
      refusal:
        'it was begun with a format that commits to no rules. End it with the version of servegym that began it',
    },
  ],
  formerFormat: "SELECT count(*) AS format FROM sqlite_schema WHERE name = 'season'",
  sql: SQL,
};

/** Options of the reset of a ranked episode, as they are kept: they name the episode, and never its seed. */
export type RankedReset = ResetOptions & SeasonEpisode;

interface Submission {
  readonly number: number;
  readonly name: string;
  /** Digest of its admission, and after its last action. */
  readonly admission: string;
  readonly digest: string;
  /** Actions that it has played. */
  readonly actions: number;
}

interface EpisodeRow {
  readonly key: number;
  readonly submission: number;
  readonly task: string;
  readonly episode: number;
  readonly session: string | null;
  readonly client: string;
  readonly episode_id: string;
  readonly opened_at: number;
  readonly done: number;
}

/**
 * The book of a season, in a SQLite file: its rules and secret, the submissions, and each episode with its actions, which
 * are written before their answers are given. An episode is dealt once and counts from then on, whatever becomes of it.
 */
export class SeasonLedger {
  readonly rules: SeasonRules;
  readonly #secret: string;
  readonly #file: SqliteFile<keyof typeof SQL>;
  readonly #now: () => number;
  /** Episodes that this process has dealt and not yet answered. */
  readonly #dealt = new Set<number>();
  #lock: DatabaseSync | undefined;

  /** @throws EnvironmentError `STORE_ERROR` when there is a file already, or it cannot be written */
  static create(
    path: string,
    season: Omit<SeasonRules, 'created_at' | 'commitment'>,
    now: () => number = Date.now,
  ): SeasonLedger {
    if (existsSync(path)) throw storeError(`There is a file ${path} already.`);
    const secret = randomBytes(32).toString('hex');
    const begun = { ...season, name: readName(season.name), created_at: now() };
    const rules: SeasonRules = { ...begun, commitment: commitmentOf(begun, secret) };
    // The secret is the operator's alone.
    closeSync(openSync(path, 'wx', 0o600));
    return new SeasonLedger(path, now, [JSON.stringify(rules), secret]);
  }

  /** @throws EnvironmentError `STORE_ERROR` when there is no season in the file */
  static open(path: string, now: () => number = Date.now): SeasonLedger {
    if (!existsSync(path)) throw storeError(`There is no file ${path}.`);
    if (statSync(path).size === 0)
      throw storeError(`The file ${path} is empty: it was cut. Put a copy back.`);
    return new SeasonLedger(path, now);
  }

  private constructor(path: string, now: () => number, created?: readonly [rules: string, secret: string]) {
    this.#now = now;
    let file: SqliteFile<keyof typeof SQL> | undefined;
    try {
      file = new SqliteFile(path, TABLES, { mustHaveTables: created === undefined });
      if (created !== undefined) file.statements.create.run(...created);
      const season = file.statements.season.get() as { rules: string; secret: string } | undefined;
      if (season === undefined) throw new Error('its creation was cut short. Remove it, and create it again');
      this.rules = JSON.parse(season.rules) as SeasonRules;
      this.#secret = season.secret;
      this.#file = file;
    } catch (error) {
      file?.database.close();
      throw storeError(`The season in ${path} cannot be opened: ${reasonOf(error)}.`, error);
    }
  }

  get #statements() {
    return this.#file.statements;
  }

  /**
   * Keeps other processes from serving or closing the season, until this process ends.
   * @throws EnvironmentError `STORE_ERROR` when another process holds it
   */
  hold(path: string): void {
    const lock = new DatabaseSync(`${path}-lock`, { timeout: 0 });
    try {
      lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      lock.close();
      if (!isBusy(error)) throw error;
      throw storeError(`The season in ${path} is being served. Stop its server first.`, error);
    }
    this.#lock = lock;
  }

  /** True once the results are made: nothing is played any more. */
  get isClosed(): boolean {
    return (this.#statements.season.get() as { closed_at: number | null }).closed_at !== null;
  }

  /** The secret, for the results. @throws Error before the season is closed */
  get secret(): string {
    if (!this.isClosed) throw new Error('Expected a closed season: its secret is kept until then');
    return this.#secret;
  }

  get submissions(): readonly Submission[] {
    return this.#statements.submissions.all() as unknown as Submission[];
  }

  /** Receipt of the last admission, which covers all of them; `null` before the first. */
  get receipt(): string | null {
    const last = this.submissions.at(-1);
    return last === undefined ? null : receiptOf(last.number, 0, last.admission);
  }

  /**
   * Admits a submission. Answers its token, which is kept as a digest only, and its first receipt.
   * @throws EnvironmentError `INVALID_NAME`, `SUBMISSION_TAKEN`, `SEASON_CLOSED`
   */
  admit(text: string): { readonly number: number; readonly token: string; readonly receipt: string } {
    const name = readName(text);
    const token = randomBytes(24).toString('base64url');
    return this.#file.transact(() => {
      this.#requireOpen();
      const { submissions } = this;
      const taken = submissions.find((submission) => skeletonOf(submission.name) === skeletonOf(name));
      if (taken !== undefined) {
        const problem = `Expected a new name, got ${name}, which is, or looks like, ${taken.name}, admitted already.`;
        throw new EnvironmentError('SUBMISSION_TAKEN', problem);
      }
      const number = submissions.length + 1;
      const admission = admissionDigest(submissions.at(-1)?.admission ?? this.rules.commitment, number, name);
      this.#statements.admit.run(number, name, sha256(token), this.#now(), admission, admission);
      return { number, token, receipt: receiptOf(number, 0, admission) };
    });
  }

  /**
   * Deals the next episode of a task to a submission.
   * @throws EnvironmentError `UNKNOWN_SUBMISSION`, `SEASON_CLOSED`, `NO_EPISODES_LEFT`
   */
  deal(token: string, taskId: TaskId): RankedReset {
    const { number: submission } = this.#submissionOf(token);
    this.#requireOpen();
    const { episodes } = this.rules;
    const dealt = this.#dealtOf(submission, taskId);
    // One that a process dealt and could not answer before it was killed was seen by nobody.
    const unseen = dealt.find(({ key, session }) => session === null && !this.#dealt.has(key));
    const { episode } = unseen ?? { episode: dealt.length };
    if (episode >= episodes) {
      const problem = `Expected at most ${episodes} episodes of ${taskId}, got a reset after the last of them. Each counts, whether it was played to its end or not.`;
      throw new EnvironmentError('NO_EPISODES_LEFT', problem);
    }
    const row = this.#statements.deal.get(submission, String(taskId), episode, this.#now());
    this.#dealt.add((row as { key: number }).key);
    return { task_id: taskId, submission, episode };
  }

  /** Seed of an episode, for the environment alone. */
  seedOf(episode: SeasonEpisode): number {
    return seedOf(this.#secret, episode);
  }

  /** Notes that an episode came to its end. */
  finish({ submission, task_id, episode }: SeasonEpisode): void {
    this.#statements.finish.run(submission, String(task_id), episode);
  }

  /** Progress of a submission in each task, and its receipt. @throws EnvironmentError `UNKNOWN_SUBMISSION` */
  progressOf(token: string) {
    const { number, actions, digest } = this.#submissionOf(token);
    const tasks = this.rules.task_ids.map((task_id) => {
      const dealt = this.#dealtOf(number, task_id);
      const finished = dealt.filter(({ done }) => done === 1).length;
      return { task_id, opened: dealt.length, finished, episodes: this.rules.episodes };
    });
    return { tasks, receipt: receiptOf(number, actions, digest) };
  }

  /** Runs of the actions of a submission in the order in which they were played, by the indices of its episodes. */
  orderOf(submission: number): [episode: number, actions: number][] {
    const { task_ids, episodes } = this.rules;
    const tasks = task_ids.map(String);
    const runs: [number, number][] = [];
    for (const row of this.#statements.order.iterate(submission) as IterableIterator<unknown>) {
      const { task, episode } = row as EpisodeRow;
      const index = tasks.indexOf(task) * episodes + episode;
      const last = runs.at(-1);
      if (last?.[0] === index) last[1]++;
      else runs.push([index, 1]);
    }
    return runs;
  }

  /** Ends the play. */
  closeSeason(): void {
    if (!this.isClosed) this.#statements.closeSeason.run(this.#now());
  }

  /** All episodes of a submission: those that it never opened have no actions. */
  episodesOf(submission: number): (SeasonEpisode & { readonly actions: readonly unknown[] })[] {
    const { task_ids, episodes } = this.rules;
    return task_ids.flatMap((task_id) => {
      const dealt = this.#dealtOf(submission, task_id);
      return Array.from({ length: episodes }, (_, episode) => {
        const actions = episode in dealt ? this.#actionsOf(dealt[episode].key) : [];
        return { submission, task_id, episode, actions: actions.map((text) => JSON.parse(text)) };
      });
    });
  }

  /** The store of the sessions that play the season: an episode is kept whatever becomes of its session. */
  store(): SessionStore {
    return {
      open: (id, _environment, client) => this.#journal(id, client ?? ''),
      take: async (id) => this.#take(id),
      remove: async () => {},
      close: async () => {},
    };
  }

  close(): void {
    this.#file.database.close();
    this.#lock?.close();
  }

  #journal(id: string, client: string, playing?: number): SessionJournal {
    let key = playing;
    return {
      reset: async (episodeId, options) => {
        const { submission, task_id, episode } = options as RankedReset;
        this.#requireOpen();
        const row = this.#statements.answer.get(id, client, episodeId, submission, String(task_id), episode);
        key = (row as { key: number }).key;
        this.#dealt.delete(key);
      },
      step: async (index, action) => {
        this.#requireOpen();
        this.#file.transact(() => this.#saveAction(key!, index, JSON.stringify(action)));
      },
      isOwned: async () => true,
    };
  }

  #saveAction(key: number, index: number, text: string): void {
    const { playing, saveAction, saveDigest } = this.#statements;
    const row = playing.get(key) as unknown as Submission & EpisodeRow;
    const { number, task, episode, opened_at, actions, digest } = row;
    const { minutes } = this.rules;
    if (this.#now() - opened_at > minutes * 60_000) {
      const problem = `Expected the last action within ${minutes} minutes of the reset. The episode counts as far as it was played; reset to play the next.`;
      throw new EnvironmentError('EPISODE_EXPIRED', problem);
    }
    saveAction.run(key, index, text, actions + 1);
    saveDigest.run(actions + 1, actionDigest(digest, task, episode, text), number);
  }

  #take(id: string): StoredSession | undefined {
    if (this.isClosed) return undefined;
    const row = this.#statements.ofSession.get(id) as EpisodeRow | undefined;
    if (row === undefined) return undefined;
    const { key, client, submission, episode, episode_id: episodeId } = row;
    const task_id = this.rules.task_ids.find((each) => String(each) === row.task)!;
    const reset: RankedReset = { task_id, submission, episode };
    const entries = [JSON.stringify(reset), ...this.#actionsOf(key)];
    const about = { environment: this.rules.environment, client, episodeId };
    return storedSession(about, entries, undefined, this.#journal(id, client, key));
  }

  #dealtOf(submission: number, taskId: TaskId): EpisodeRow[] {
    return this.#statements.episodesOf.all(submission, String(taskId)) as unknown as EpisodeRow[];
  }

  #actionsOf(key: number): string[] {
    return (this.#statements.actions.all(key) as { text: string }[]).map(({ text }) => text);
  }

  #submissionOf(token: string): Submission {
    const found = this.#statements.submission.get(sha256(token)) as Submission | undefined;
    if (found !== undefined) return found;
    const problem =
      'Expected the token of a submission as `submission`, got another text. The operator of the season gives tokens.';
    throw new EnvironmentError('UNKNOWN_SUBMISSION', problem);
  }

  #requireOpen(): void {
    if (!this.isClosed) return;
    throw new EnvironmentError('SEASON_CLOSED', 'The season is closed. Its results file has every episode.');
  }
}

/** Wide seeds: the simulator draws nothing from them that 2^32 tries could find. */
const LEAST_SEED = 2 ** 52;

/** Commitment to rules and secret: published at the start, so that the operator can choose no others afterwards. */
export function commitmentOf(rules: Omit<SeasonRules, 'commitment'>, secret: string): string {
  const { name, environment, task_ids, episodes, minutes, created_at } = rules;
  const { id, version } = environment;
  return sha256(JSON.stringify([secret, name, id, version, task_ids, episodes, minutes, created_at]));
}

/**
 * Seed of an episode: each submission has its own, so that none can look into another's. Only who has the secret can
 * compute it; 52 random bits.
 */
export function seedOf(secret: string, { submission, task_id, episode }: SeasonEpisode): number {
  const text = JSON.stringify([submission, String(task_id), episode]);
  const bits = createHmac('sha256', secret).update(text).digest().readBigUInt64BE();
  return LEAST_SEED + Number(bits % BigInt(LEAST_SEED));
}
