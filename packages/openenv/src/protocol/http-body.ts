import type { JsonSchema } from './json-schema.ts';
import type { ValidationIssue } from './validation-issue.ts';

/** What `reset` and `step` answer, over HTTP and inside a WebSocket `observation` message. */
export interface ObservationBody<Observation = Readonly<Record<string, unknown>>> {
  readonly observation: Observation;
  readonly reward: number | null;
  readonly done: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** `POST /reset`. Every other key is an option of the environment; keys that it does not name are ignored. */
export interface ResetBody {
  /** Non-negative integer below 2^53. Without one the server draws a seed. */
  readonly seed?: number | null;
  /** At most 255 characters. */
  readonly episode_id?: string | null;
  /** The session to start again; without one a new session is opened. */
  readonly session_id?: string | null;
  readonly [option: string]: unknown;
}

/** The answer of `POST /reset` and `POST /step`. */
export interface SessionAnswer<Observation = Readonly<Record<string, unknown>>>
  extends Omit<ObservationBody<Observation>, 'metadata'> {
  readonly session_id: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** `POST /step`. */
export interface StepBody {
  readonly action: Readonly<Record<string, unknown>>;
  /** Without one: the session that the caller reset last. */
  readonly session_id?: string | null;
  /** Accepted for compatibility; a step always runs to its end. */
  readonly timeout_s?: number | null;
  readonly request_id?: string | null;
  readonly [option: string]: unknown;
}

/** `GET /state` and the WebSocket `state` message. The environment's own fields stand beside these two. */
export interface StateBody {
  readonly episode_id: string | null;
  /** Steps since the last reset. */
  readonly step_count: number;
  readonly [field: string]: unknown;
}

/** `GET /health`. */
export interface HealthBody {
  readonly status: 'healthy' | 'unhealthy' | 'degraded';
  readonly active_sessions: number;
  readonly uptime_seconds: number;
  /** Why the server is `degraded`. */
  readonly reason?: string;
}

/** `GET /environments`: those that are reached through the same port. */
export interface EnvironmentsBody {
  readonly environments: readonly EnvironmentEntry[];
}

export interface EnvironmentEntry {
  readonly id: string;
  readonly version: string;
  readonly name: string;
  readonly description: string;
  /** Root of its server, relative to that of the server that was asked: `./` is that one itself. */
  readonly path: string;
}

/** `GET /metadata`. */
export interface MetadataBody {
  readonly name: string;
  readonly description: string;
  readonly readme_content: string | null;
  readonly version: string | null;
  readonly author: string | null;
  readonly documentation_url: string | null;
}

/** `GET /schema`. */
export interface SchemaBody {
  readonly action: JsonSchema;
  readonly observation: JsonSchema;
  readonly reset_observation: JsonSchema;
  readonly state: JsonSchema;
}

/** `GET /tasks`. */
export interface TasksBody {
  readonly tasks: readonly {
    readonly id: string | number;
    readonly name: string;
    readonly difficulty: 'easy' | 'medium' | 'hard';
    readonly description: string;
    readonly [field: string]: unknown;
  }[];
  readonly action_schema: JsonSchema;
}

/**
 * `POST /grader`: an own record of the server by session, or a log whose actions are replayed after a reset with the
 * options that stand beside it; those that do not are as in the session.
 */
export interface GraderBody {
  readonly session_id?: string | null;
  /** Actions, or objects with an `action`. Everything else in them is ignored. */
  readonly episode_log?: readonly unknown[] | Readonly<Record<string, unknown>> | null;
  readonly task_id?: string | number | null;
  readonly seed?: number | null;
  readonly [option: string]: unknown;
}

/** The answer of `POST /grader`. */
export interface GradeBody {
  /** Strictly inside (0, 1). */
  readonly score: number;
  readonly breakdown: Readonly<Record<string, unknown>>;
  readonly feedback: string;
  /**
   * What the actions were replayed on: the options of the reset, `seed` and `task_id` among them, less lists and objects.
   * Servers of others may leave it out.
   */
  readonly replayed?: Readonly<Record<string, unknown>>;
}

/** The body of every HTTP error: text, or the list of what is wrong with the input (status 422). */
export interface ErrorBody {
  readonly detail: string | readonly ValidationIssue[];
  /** Stable code, where the text has one. */
  readonly code?: string;
}
