import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import {
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type StepResult,
} from '../protocol/definition.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import type { OpenEnvServer } from '../server/create-server.ts';
import { described } from '../server/route-table.ts';
import { whenDone } from '../sessions/turns.ts';
import { type RankedReset, type SeasonLedger, seasonRules, type TaskId, taskId } from './season-ledger.ts';

const rankedState = z
  .object({
    task_id: taskId.nullable(),
    episode: z.int().nullable().describe('Of the submission in the task, from 0'),
    done: z.boolean(),
  })
  .meta({ title: 'RankedState' });
type RankedState = z.infer<typeof rankedState>;

const PROCESS_CLOCK = { now: () => performance.now(), sleep: (ms: number): Promise<unknown> => sleep(ms) };

/**
 * An environment as a season serves it: a reset names a submission and a task and is dealt the next episode. Nothing that
 * tells the seed or more than the observation goes out: no metadata, no state of the environment, no tools, no grader.
 * @param resetMs Resets are answered at whole multiples of this time, ms: how long the traffic of an episode takes to draw
 * tells how much there is.
 */
export function seasonEnvironment(
  definition: EnvironmentDefinition,
  ledger: SeasonLedger,
  { resetMs = 250, clock = PROCESS_CLOCK } = {},
): EnvironmentDefinition<unknown, object, RankedState> {
  const { environment, task_ids: taskIds } = ledger.rules;
  if (definition.id !== environment.id || definition.version !== environment.version) {
    const problem = `Expected ${environment.id} ${environment.version}, on which the season was created, got ${definition.id} ${definition.version}. Install that version.`;
    throw new EnvironmentError('FOREIGN_SEASON', problem);
  }
  const { id, version, name, description, action, observation, author, documentationUrl } = definition;
  const readOptions = resetOptionsReader(definition);
  return {
    ...{ id, version, name, description, action, observation, author, documentationUrl },
    state: rankedState,
    readme: `A ranked season of ${name}: \`reset(submission=TOKEN, task_id=TASK)\` deals the next of ${ledger.rules.episodes} episodes. Each counts from its reset on. \`GET /season\` has the rules.`,
    // Strict: an option that a season ignores must not cost an episode.
    resetOptions: z.strictObject({
      submission: z.string().max(200).describe('Token of the submission'),
      task_id: taskId.default(taskIds[0]!).describe(`One of ${taskIds.join(', ')}`),
      seed: z.never('Ranked episodes have seeds of their own: leave it out').optional(),
    }),
    tasks: (definition.tasks ?? []).filter((task) => taskIds.includes(task.id)),
    episodeSize: definition.episodeSize && (({ task_id }) => definition.episodeSize!({ task_id })),
    dealEpisode: ({ submission, task_id }) => ledger.deal(String(submission), readTask(task_id)),
    create: () => ranked(definition.create()),
  };

  /** Reads a task of the season by its id. @throws EnvironmentError `UNKNOWN_TASK` */
  function readTask(asked: unknown): TaskId {
    const found = taskIds.find((taskId) => String(taskId) === String(asked));
    if (found !== undefined) return found;
    const problem = `Expected a task of the season, one of ${taskIds.join(', ')}, got ${String(asked).slice(0, 100)}.`;
    throw new EnvironmentError('UNKNOWN_TASK', problem);
  }

  function ranked(instance: Environment): Environment<unknown, object, RankedState> {
    let playing: RankedReset | null = null;
    let isDone = false;
    const stepped = (result: StepResult) => {
      if (result.done && !isDone) {
        isDone = true;
        ledger.finish(playing!);
      }
      return shown(result);
    };
    return {
      async reset(options) {
        const startedAt = clock.now();
        const dealt = options as RankedReset;
        if (!Number.isInteger(dealt.episode)) {
          const problem =
            'Expected the reset of a session: ranked episodes are played one at a time, without vector stepping.';
          throw new EnvironmentError('RANKED_SESSION', problem);
        }
        const { task_id } = dealt;
        const result = shown(await instance.reset(readOptions({ task_id, seed: ledger.seedOf(dealt) })));
        playing = dealt;
        isDone = false;
        if (resetMs > 0) {
          const tookMs = clock.now() - startedAt;
          await clock.sleep(Math.max(1, Math.ceil(tookMs / resetMs)) * resetMs - tookMs);
        }
        return result;
      },
      step(action) {
        return whenDone(instance.step(action), stepped);
      },
      state() {
        const { task_id = null, episode = null } = playing ?? {};
        return { task_id, episode, done: isDone };
      },
      close: () => instance.close?.(),
    };
  }
}

/** A result without its metadata, which may tell of phases and of traffic to come. */
function shown({ observation, reward, done }: StepResult): StepResult {
  return { observation, reward, done };
}

const progressRequest = z
  .strictObject({ submission: z.string().max(200).describe('Token of the submission') })
  .meta({ title: 'SeasonProgressRequest' });
const count = z.int().min(0);

/** `GET /season`: the rules and the commitment to the seeds. `POST /season/progress`: how far a submission is. */
export function mountSeasonRoutes(server: OpenEnvServer, ledger: SeasonLedger): void {
  server.addRoute(
    {
      ...described('get_season'),
      answer: seasonRules.extend({
        submissions: count,
        receipt: z.string().nullable().describe('Of the last admission: it covers all of them'),
        closed: z.boolean(),
      }),
    },
    () => {
      const { rules, receipt, isClosed: closed } = ledger;
      return { ...rules, submissions: ledger.submissions.length, receipt, closed };
    },
  );
  server.addRoute(
    {
      ...described('season_progress_post'),
      body: progressRequest,
      answer: z.object({
        tasks: z.array(z.object({ task_id: taskId, opened: count, finished: count, episodes: count })),
        receipt: z.string().describe('Keep it: it proves the actions so far'),
      }),
    },
    (_, { body: { submission } }) => ledger.progressOf(submission),
  );
}
