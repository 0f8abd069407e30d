import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import {
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type StepResult,
} from '../protocol/definition.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import type { OpenEnvServer } from '../server/create-server.ts';
import { type RankedReset, type SeasonLedger, seasonRules, type TaskId } from './season-ledger.ts';

const rankedState = z
  .object({
    task_id: z.union([z.string(), z.number()]).nullable(),
    episode: z.int().nullable().meta({ description: 'Of the submission in the task, from 0' }),
    done: z.boolean(),
  })
  .meta({ title: 'RankedState' });
type RankedState = z.infer<typeof rankedState>;

type Definition = EnvironmentDefinition<unknown, object, object>;

export interface SeasonEnvironmentOptions {
  /**
   * Resets are answered at whole multiples of this time, ms: how long the traffic of an episode takes to draw tells how
   * much there is. Default 250.
   */
  readonly resetMs?: number;
  /** Clock of that time. Default: the process's. */
  readonly clock?: { now(): number; sleep(ms: number): Promise<unknown> };
}

type Pace = Required<SeasonEnvironmentOptions>;

/**
 * An environment as a season serves it: a reset names a submission and a task and is dealt the next episode. Nothing that
 * tells the seed or more than the observation goes out: no metadata, no state of the environment, no tools, no grader.
 */
export function seasonEnvironment(
  definition: Definition,
  ledger: SeasonLedger,
  { resetMs = 250, clock = { now: () => performance.now(), sleep } }: SeasonEnvironmentOptions = {},
): EnvironmentDefinition<unknown, object, RankedState> {
  const { environment, task_ids: taskIds } = ledger.rules;
  if (definition.id !== environment.id || definition.version !== environment.version) {
    throw new EnvironmentError(
      'FOREIGN_SEASON',
      `Expected ${environment.id} ${environment.version}, on which the season was created, got ${definition.id} ${definition.version}. Install that version.`,
    );
  }
  const { id, version, name, description, action, observation, author, documentationUrl } = definition;
  const readTask = taskReader(taskIds);
  const resetOf = episodeResets(definition);
  return {
    ...{ id, version, name, description, action, observation, state: rankedState },
    ...(author !== undefined && { author }),
    ...(documentationUrl !== undefined && { documentationUrl }),
    readme: `A ranked season of ${name}: \`reset(submission=TOKEN, task_id=TASK)\` deals the next of ${ledger.rules.episodes} episodes. Each counts from its reset on. \`GET /season\` has the rules.`,
    resetOptions: z.object({
      submission: z.string().max(200).meta({ description: 'Token of the submission' }),
      task_id: z
        .union([z.string(), z.number()])
        .default(taskIds[0]!)
        .meta({ description: `One of ${taskIds.join(', ')}` }),
      seed: z.never('Ranked episodes have seeds of their own: leave it out').optional(),
    }),
    tasks: (definition.tasks ?? []).filter((task) => taskIds.includes(task.id)),
    ...(definition.episodeSize && {
      episodeSize: ({ task_id }: ResetOptions) => definition.episodeSize!({ task_id }),
    }),
    dealEpisode: ({ submission, task_id }) => ledger.deal(String(submission), readTask(task_id)),
    create: () => new RankedInstance(definition.create(), ledger, resetOf, { resetMs, clock }),
  };
}

/** Makes the options of the reset of an episode, with the defaults of the environment. */
export function episodeResets(definition: Definition): (taskId: TaskId, seed: number) => ResetOptions {
  const readOptions = resetOptionsReader(definition);
  return (taskId, seed) => readOptions({ task_id: taskId, seed });
}

/** Reads a task of the season by its id. @throws EnvironmentError `UNKNOWN_TASK` */
function taskReader(taskIds: readonly TaskId[]): (asked: unknown) => TaskId {
  return (asked) => {
    const found = taskIds.find((taskId) => String(taskId) === String(asked));
    if (found !== undefined) return found;
    throw new EnvironmentError(
      'UNKNOWN_TASK',
      `Expected a task of the season, one of ${taskIds.join(', ')}, got ${String(asked).slice(0, 100)}.`,
    );
  };
}

class RankedInstance implements Environment<unknown, object, RankedState> {
  readonly #instance: Environment<unknown, object, object>;
  readonly #ledger: SeasonLedger;
  readonly #resetOf: ReturnType<typeof episodeResets>;
  readonly #pace: Pace;
  #episode: RankedReset | null = null;
  #done = false;

  constructor(
    instance: Environment<unknown, object, object>,
    ledger: SeasonLedger,
    resetOf: ReturnType<typeof episodeResets>,
    pace: Pace,
  ) {
    this.#instance = instance;
    this.#ledger = ledger;
    this.#resetOf = resetOf;
    this.#pace = pace;
  }

  async reset(options: ResetOptions): Promise<StepResult<object>> {
    const { clock, resetMs } = this.#pace;
    const startedAt = clock.now();
    const { task_id: taskId, submission, episode } = options as RankedReset;
    if (!Number.isInteger(episode)) {
      throw new EnvironmentError(
        'RANKED_SESSION',
        'Expected the reset of a session: ranked episodes are played one at a time, without vector stepping.',
      );
    }
    const seed = this.#ledger.seedOf({ submission, taskId, episode });
    const result = shown(await this.#instance.reset(this.#resetOf(taskId, seed)));
    this.#episode = options as RankedReset;
    this.#done = false;
    if (resetMs > 0) {
      const tookMs = clock.now() - startedAt;
      await clock.sleep(Math.max(1, Math.ceil(tookMs / resetMs)) * resetMs - tookMs);
    }
    return result;
  }

  step(action: unknown): StepResult<object> | Promise<StepResult<object>> {
    const result = this.#instance.step(action);
    return result instanceof Promise ? result.then((late) => this.#stepped(late)) : this.#stepped(result);
  }

  state(): RankedState {
    const { task_id = null, episode = null } = this.#episode ?? {};
    return { task_id, episode, done: this.#done };
  }

  close(): void | Promise<void> {
    return this.#instance.close?.();
  }

  #stepped(result: StepResult<object>): StepResult<object> {
    if (result.done && !this.#done) {
      const { submission, task_id: taskId, episode } = this.#episode!;
      this.#done = true;
      this.#ledger.finish({ submission, taskId, episode });
    }
    return shown(result);
  }
}

/** A result without its metadata, which may tell of phases and of traffic to come. */
function shown({ observation, reward, done }: StepResult<object>): StepResult<object> {
  return { observation, reward, done };
}

const progressRequest = z
  .strictObject({ submission: z.string().max(200).meta({ description: 'Token of the submission' }) })
  .meta({ title: 'SeasonProgressRequest' });
const count = z.int().min(0);

/** `GET /season`: the rules and the commitment to the seeds. `POST /season/progress`: how far a submission is. */
export function mountSeasonRoutes<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  ledger: SeasonLedger,
): void {
  server.addRoute(
    {
      method: 'get',
      path: '/season',
      operationId: 'get_season',
      tag: 'Season',
      summary: 'The rules of the season, and the commitment to its seeds',
      description: 'Write the commitment down: `servegym season verify` compares the results with it.',
      answer: seasonRules.extend({ submissions: count, closed: z.boolean() }),
    },
    () => ({ ...ledger.rules, submissions: ledger.submissions.length, closed: ledger.isClosed }),
  );
  server.addRoute(
    {
      method: 'post',
      path: '/season/progress',
      operationId: 'season_progress_post',
      tag: 'Season',
      summary: 'Episodes that a submission has opened and finished',
      body: progressRequest,
      answer: z.object({
        tasks: z.array(
          z.object({
            task_id: z.union([z.string(), z.number()]),
            ...{ opened: count, finished: count, episodes: count },
          }),
        ),
      }),
      errors: { 400: 'Unknown submission (`UNKNOWN_SUBMISSION`)', 422: 'Invalid body' },
    },
    (_, { body: { submission } }) => ({ tasks: ledger.progressOf(submission) }),
  );
}
