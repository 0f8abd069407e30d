import type { GradeBody, MetadataBody, SchemaBody, TasksBody } from '@servegym/openenv/protocol';

export type { SchemaBody };
export type EnvironmentInfo = Pick<MetadataBody, 'name' | 'description' | 'version' | 'readme_content'>;
export type Task = TasksBody['tasks'][number];
export type Grade = GradeBody;

/** A JSON object whose fields the reader checks one by one. */
export type Fields = Readonly<Record<string, unknown>>;

/** One entry of `GET /policies`. */
export interface PolicyInfo {
  readonly name: string;
  readonly title: string;
  readonly description: string;
}

/** Answer to a reset or a step. `reward` is `null` right after a reset. */
export interface Outcome {
  readonly observation: Fields;
  readonly reward: number | null;
  readonly done: boolean;
  readonly metadata: Fields;
}

/** A step together with the action that was played, and why, where a policy tells. */
export interface PlayedStep extends Outcome {
  readonly action: Fields;
  readonly explanation?: Fields;
}

/** A session at the start of an episode, and its first observation. */
export interface StartedSession extends Outcome {
  readonly sessionId: string;
}

/** An episode as `GET /episodes/{session_id}` gives it; of what this page has played, without environment and digest. */
export interface EpisodeFile {
  readonly format: string;
  readonly environment?: { readonly id: string; readonly version: string };
  readonly reset: Fields;
  readonly actions: readonly Fields[];
  /** Name of the player, as the player gives it. */
  readonly author?: string | null;
  readonly digest?: string;
}

/** An episode that was played into a new session. */
export interface OpenedEpisode {
  readonly sessionId: string;
  /** It came out as its file says; `null` where the file says nothing. */
  readonly verified: boolean | null;
  /** The version of the environment that played it now. */
  readonly version: string;
  /** The answer to the reset, where it was asked for. */
  readonly start?: Outcome;
  readonly steps: readonly PlayedStep[];
}

/** A run on the leaderboard. */
export interface LeaderboardEntry {
  readonly id: number;
  readonly rank: number;
  readonly name: string;
  readonly task_id: string | null;
  /** The other options of the reset as JSON; empty without any. */
  readonly scenario: string;
  readonly seed: number;
  readonly score: number | null;
  readonly return: number;
  readonly windows: number;
  readonly digest: string;
}

/** A request of this page and what came back. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** The JSON text that was sent. */
  readonly request?: string;
  /** 0 when no answer came. */
  readonly status: number;
  readonly answer: string;
  /** Time after which the server wants to be asked again. */
  readonly retryAfterMs?: number;
  readonly milliseconds: number;
}
