import { z } from 'zod';
import type { GradeBody, TasksBody } from './messages.ts';

/** Result of `reset` and `step`. The server puts `reward`, `done` and `metadata` beside `observation` on the wire. */
export interface StepResult<Observation = object> {
  readonly observation: Observation;
  /** `null` right after a reset. Always finite otherwise. */
  readonly reward: number | null;
  readonly done: boolean;
  /** Anything a developer may want to see that is not part of the observation. Must be JSON. */
  readonly metadata?: Record<string, unknown>;
}

/** The arguments of `reset` that every environment understands; an environment may accept more. */
export interface ResetOptions {
  /** Non-negative integer below 2^53. The same seed and actions give the same episode, bit for bit. */
  readonly seed?: number;
  /** A label that comes back in `state`. It never changes the episode. */
  readonly episode_id?: string;
  readonly [option: string]: unknown;
}

/** One running instance of an environment. One instance plays one trajectory at a time; instances share nothing. */
export interface Environment<Action = unknown, Observation = object, State = object> {
  /**
   * Starts a new episode. A server always passes a seed. Throws `EnvironmentError` when an option cannot be honoured;
   * whatever it throws, the instance is then as it was before.
   */
  reset(options: ResetOptions): StepResult<Observation> | Promise<StepResult<Observation>>;
  /**
   * Plays one action that has passed the action schema. Throws `EnvironmentError` before a reset or after the end;
   * whatever it throws, the instance is then as it was before.
   */
  step(action: Action): StepResult<Observation> | Promise<StepResult<Observation>>;
  /** The environment's own state fields. The server adds `episode_id` and `step_count`. */
  state(): State;
  /**
   * Frees what the instance holds. Called once, when its session ends; also while a `reset` or `step` takes too long,
   * which should then come to an end.
   */
  close?(): void | Promise<void>;
}

/** A named collection of episodes, as data sets have them. A task of a split is the reset options that start it. */
export interface TaskSplit {
  readonly name: string;
  readonly type: 'train' | 'validation' | 'test';
  /** Number of tasks. */
  readonly size: number;
  /** The reset options of the task at an index from 0 to `size` - 1. Must be JSON. */
  task(index: number): ResetOptions;
}

/** Options and actions of an episode: enough to replay it exactly. */
export interface EpisodeRecord<Action = unknown> {
  readonly reset: ResetOptions;
  readonly actions: readonly Action[];
}

/** A client that waits for an answer. */
export interface Caller {
  /** Requests of the same client have the same name. */
  readonly name: string;
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
}

/** A graded episode, as `POST /grader` answers it. */
export type Grade = Omit<GradeBody, 'replayed'>;

/** A session as a tool of the environment sees it. */
export interface ToolSession<Action = unknown, Observation = object, State = object> {
  readonly id: string;
  /** The instance, to look at. What a tool changes on it, other than by `step`, is lost when the session is rebuilt. */
  readonly environment: Environment<Action, Observation, State>;
  /** The episode so far; `null` before the first reset. */
  readonly record: EpisodeRecord<Action> | null;
  /** Result of the last reset or step. */
  readonly lastResult: StepResult<Observation> | null;
  /** Plays an action, which becomes part of the record. @throws EnvironmentError `VALIDATION_ERROR` */
  step(action: Action): Promise<StepResult<Observation>>;
}

/** A tool that an environment brings for agents, beside those that the server makes from its schemas. */
interface ToolDefinition<
  Action = unknown,
  Observation = object,
  State = object,
  Input extends z.ZodObject = z.ZodObject,
> {
  /**
   * Letters, digits, `_` and `-`, 64 at most. `reset`, `step`, `state` and `close` are reserved in OpenEnv;
   * `start_episode`, `take_action`, `get_state`, `list_tasks` and `grade_episode` are the server's own.
   */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** The arguments. `session_id` is the server's own. */
  readonly input: Input;
  /** True for a tool that changes nothing. Default false. */
  readonly readOnly?: boolean;
  /** Answers a call with JSON. What it throws is the error that the agent reads. */
  call(args: z.infer<Input>, session: ToolSession<Action, Observation, State>): unknown;
}

/** Fields that stand beside `observation` in an HTTP answer. */
interface AnswerFields<Observation> {
  /** Their schema, for the OpenAPI document. */
  readonly schema: z.ZodObject;
  of(result: StepResult<Observation>): Readonly<Record<string, unknown>>;
}

/**
 * Everything the server needs to know to serve an environment. Pass it through `defineEnvironment` so that the
 * types of the schemas flow into `create`.
 */
export interface EnvironmentDefinition<Action = unknown, Observation = object, State = object> {
  /** Short stable name, for instance `llmserve`. */
  readonly id: string;
  /** Changes whenever the same seed and actions may give another episode. */
  readonly version: string;
  /** Human name; becomes `name` of `GET /metadata`. */
  readonly name: string;
  readonly description: string;
  readonly readme?: string;
  readonly author?: string;
  readonly documentationUrl?: string;
  /** A strict object schema with a `title` in its metadata. Its inferred type is `Action`. */
  readonly action: z.ZodType<Action>;
  /** The observation without `reward`, `done` and `metadata`. */
  readonly observation: z.ZodType<Observation>;
  /** The environment's own state fields, without `episode_id` and `step_count`. */
  readonly state: z.ZodType<State>;
  /** Own options of `reset`, beside `seed` and `episode_id`. Options it does not name are refused, unless it is a `z.looseObject`. */
  readonly resetOptions?: z.ZodObject;
  /** As `GET /tasks` lists them. Own fields may be added. */
  readonly tasks?: TasksBody['tasks'];
  /** Tools of its own, each made by `defineTool`. */
  readonly tools?: readonly ToolDefinition<NoInfer<Action>, NoInfer<Observation>, NoInfer<State>>[];
  /** Collections of episodes for the Task API. `reset` then also takes `split` and `index`. */
  readonly splits?: readonly TaskSplit[];
  /**
   * True when the same actions give the same episode again, at no harm. Default true. An environment that
   * measures real time or acts on the outside says false: its sessions are not kept, and its records have no actions.
   */
  readonly replayable?: boolean;
  /** Whether a server holds each observation against its schema. Default true where `defineEnvironment` made this. */
  readonly checksObservations?: boolean;
  /** Further fields of the HTTP answers to `/reset` and `/step`, for clients that look for them there. */
  readonly httpFields?: {
    readonly reset?: AnswerFields<Observation>;
    readonly step?: AnswerFields<Observation>;
  };
  /**
   * Size of an episode with these valid options, in units of the environment: requests, rows. Servers limit it, also for
   * all episodes together. Each episode has size 1 without this.
   */
  episodeSize?(options: ResetOptions): number;
  /**
   * Called once for each new episode of a session, before its reset. The instance gets the options that it answers, and
   * they are what is kept and replayed. Vector stepping does not call it.
   */
  dealEpisode?(options: ResetOptions): ResetOptions;
  /**
   * Makes a fresh instance for one session.
   * @param client digest of who opens it, where a server makes it
   */
  create(client?: string): Environment<Action, Observation, State>;
  /** Grades an episode from its record alone, by replaying it. Work that goes on elsewhere heeds the caller. */
  grade?(record: EpisodeRecord<Action>, caller?: Caller): Grade | Promise<Grade>;
}

type FieldValue = string | number | boolean | object | null | undefined;

/** Ids of environments: they stand in paths, in names of files and of metrics. */
const ID = /^[a-z][a-z0-9_-]{0,63}$/i;

/**
 * TypeScript infers the types of the schemas. `Field` keeps the literals of what `create` returns, so that an enum of the
 * schema stays an enum.
 * @throws TypeError for an id that cannot stand in a path, and an action whose schema takes unknown fields
 */
export function defineEnvironment<
  Action,
  Observation extends { readonly [Name in keyof Observation]: Field },
  State,
  Field extends FieldValue = FieldValue,
>(
  definition: EnvironmentDefinition<Action, Observation, State>,
): EnvironmentDefinition<Action, Observation, State> {
  const { id, action } = definition;
  if (!ID.test(id)) {
    const got = JSON.stringify(id);
    const problem = `Expected \`id\` to begin with a letter, then letters, digits, \`-\` and \`_\`, got ${got}.`;
    throw new TypeError(problem);
  }
  const problem = looseness(z.toJSONSchema(action, { io: 'input', unrepresentable: 'any' }));
  if (problem) throw new TypeError(`Expected \`action\` of ${id} to be a \`z.strictObject\`: ${problem}.`);
  return { checksObservations: true, ...definition };
}

/** Why a schema takes what it does not name; `undefined` where it does not, or cannot be known. */
function looseness({
  type,
  additionalProperties,
  anyOf,
  oneOf,
}: z.core.JSONSchema.BaseSchema): string | undefined {
  for (const part of anyOf ?? oneOf ?? []) {
    const problem = typeof part === 'object' ? looseness(part) : undefined;
    if (problem) return problem;
  }
  if (type === undefined) return undefined;
  if (type !== 'object') return `it takes a value of the type ${type}`;
  return additionalProperties === false ? undefined : 'it takes fields that it does not name';
}

/** Checks nothing at run time; it lets TypeScript infer the type of the arguments. */
export function defineTool<Input extends z.ZodObject, Action, Observation, State>(
  tool: ToolDefinition<Action, Observation, State, Input>,
): ToolDefinition<Action, Observation, State> {
  return tool;
}

/**
 * An error that an environment or its server tells the caller. `code` is stable; the message says what was
 * expected, what came and what to do.
 */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  /** True where the caller can correct it, also for programs that have the error from a worker thread. */
  readonly isInputError: boolean = true;
  readonly code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
