import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { type EnvironmentDefinition, EnvironmentError, type StepResult } from '../protocol/definition.ts';
import type { StateBody } from '../protocol/messages.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import { actionReader, toJsonSchema } from '../protocol/schemas.ts';
import { environmentTools } from '../server/tools.ts';
import { Session } from '../sessions/session.ts';
import {
  type Criterion,
  type CriterionId,
  criterionOf,
  firstFlaw,
  notApplicable,
  type Verdict,
} from './check.ts';
import { rfc008Checks } from './rfc008.ts';
import { evenlySpread, sampleValue } from './sample-value.ts';

/** Seed of the episodes of a self-test. */
const SEED = 0;
const EPISODE_ID = 'self-test';

interface SelfTestOptions {
  /** An action of every step. Default: the task's `default_action`, or one made from the schema. */
  readonly action?: Readonly<Record<string, unknown>>;
  /** Options of every reset. */
  readonly resetOptions?: Readonly<Record<string, unknown>>;
  /** Steps of each episode. Default 3. */
  readonly steps?: number;
}

/** One episode of a task, as far as it was played. */
interface Play {
  /** Name of the task for messages. */
  readonly label: string;
  readonly session: Session;
  readonly results: readonly StepResult[];
  /** State after the reset, then after each step. */
  readonly states: readonly StateBody[];
}

/**
 * Plays an environment in this process: it resets, steps, keeps its state, says who it is, replays and grades. An
 * environment that throws has failed; nothing is thrown.
 */
export async function selfTest(definition: EnvironmentDefinition, options: SelfTestOptions = {}) {
  const criteria: Criterion[] = [];
  let plays: readonly Play[] | undefined;
  const judge = async (id: CriterionId, run: () => Verdict | Promise<Verdict>) => {
    criteria.push(await criterionOf(id, run));
  };
  const judgePlays = (id: CriterionId, run: (plays: readonly Play[]) => Verdict | Promise<Verdict>) =>
    judge(id, () => (plays ? run(plays) : notApplicable('not judged: no episode could be played')));

  await judge('identity', () => identityFlaw(definition));
  await judge('episode', async () => {
    plays = await playTasks(definition, options);
    return null;
  });
  await judgePlays('results', (plays) => playFlaw(plays, ({ results }) => resultFlaw(definition, results)));
  await judgePlays('state', (plays) => playFlaw(plays, ({ states }) => stateFlaw(definition, states)));
  await judgePlays('isolation', (plays) => isolationFlaw(definition, plays, options));
  await judgePlays('replay', async (plays) => {
    if (definition.replayable === false) return notApplicable('the environment does not replay');
    const again = await playTasks(definition, options);
    await closeAll(again);
    return playFlaw(plays, ({ results }, index) =>
      firstFlaw(results, (result, step) =>
        isDeepStrictEqual(result, again[index].results[step])
          ? null
          : `step ${step} is another when it is replayed`,
      ),
    );
  });
  await judgePlays('grade', async (plays) => {
    if (definition.grade === undefined) return notApplicable('the environment has no grader');
    for (const { label, session } of plays) {
      const { score } = await definition.grade(session.record!);
      if (!(score > 0 && score < 1)) return `${label}: expected a score inside (0, 1), got ${score}`;
    }
    return null;
  });
  await judgePlays('end', () => endOf(definition, options));
  await judgePlays('close', async (plays) => {
    await closeAll(plays);
    return null;
  });
  const last = plays?.at(-1);
  return {
    environment: definition.id,
    version: definition.version,
    passed: criteria.every(({ passed }) => passed !== false),
    rfc008: rfc008Checks(criteria),
    criteria: criteria as readonly Criterion[],
    /** The last observation and state, of the last task. */
    observation: last?.results.at(-1)?.observation ?? null,
    state: last?.states.at(-1) ?? null,
  };
}

async function playTasks(definition: EnvironmentDefinition, options: SelfTestOptions): Promise<Play[]> {
  const plays: Play[] = [];
  try {
    for (const task of definition.tasks ?? [null]) plays.push(await playTask(definition, task, options));
    return plays;
  } catch (error) {
    await closeAll(plays);
    throw error;
  }
}

async function playTask(
  definition: EnvironmentDefinition,
  task: NonNullable<EnvironmentDefinition['tasks']>[number] | null,
  { action, resetOptions = {}, steps = 3 }: SelfTestOptions,
): Promise<Play> {
  const readAction = actionReader(definition.action);
  const chosen = action ?? task?.default_action ?? sampleValue(toJsonSchema(definition.action, 'input'));
  const reset = resetOptionsReader(definition)({
    seed: SEED,
    episode_id: EPISODE_ID,
    ...(task && { task_id: task.id }),
    ...resetOptions,
  });
  const session = new Session(definition.create());
  try {
    const results = [await session.reset(reset)];
    const states = [await session.state()];
    for (let step = 0; step < steps && !results.at(-1)!.done; step++) {
      results.push(await session.step(readAction(chosen)));
      states.push(await session.state());
    }
    return { label: task ? `task ${task.id}` : 'episode', session, results, states };
  } catch (error) {
    await session.close();
    throw error;
  }
}

/** Steps and time in which an episode ends, with actions drawn from the schema: a choice. */
const MOST_STEPS = 10_000;
const MOST_MS = 10_000;

/** Plays the first task to its end. */
async function endOf(definition: EnvironmentDefinition, { resetOptions }: SelfTestOptions): Promise<Verdict> {
  if (definition.replayable === false) return notApplicable('the environment measures real time');
  const schema = toJsonSchema(definition.action, 'input');
  const readAction = actionReader(definition.action);
  const random = evenlySpread();
  const { session, results } = await playTask(definition, definition.tasks?.[0] ?? null, {
    resetOptions,
    steps: 0,
  });
  try {
    let { done } = results[0];
    for (const end = performance.now() + MOST_MS; !done && session.stepCount < MOST_STEPS; ) {
      if (performance.now() > end)
        return notApplicable(`no end in ${session.stepCount} steps of ${MOST_MS / 1000} s`);
      ({ done } = await session.step(readAction(sampleValue(schema, random))));
    }
    if (done) return null;
    return `expected \`done\` within ${MOST_STEPS} steps of drawn actions: an episode that never ends trains and grades nobody`;
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    return notApplicable(`a drawn action was refused: ${error.message}`);
  } finally {
    await session.close();
  }
}

async function closeAll(plays: readonly Play[]): Promise<void> {
  for (const { session } of plays) await session.close();
}

function playFlaw(
  plays: readonly Play[],
  flawOf: (play: Play, index: number) => string | null,
): string | null {
  return firstFlaw(plays, (play, index) => {
    const flaw = flawOf(play, index);
    return flaw && `${play.label}: ${flaw}`;
  });
}

function identityFlaw(definition: EnvironmentDefinition): string | null {
  const nameless = (['id', 'version', 'name', 'description'] as const).find((field) => !definition[field]);
  if (nameless !== undefined) return `expected \`${nameless}\` to be a text that is not empty`;
  environmentTools(definition, 'simulation');
  return null;
}

function resultFlaw({ observation: schema }: EnvironmentDefinition, results: Play['results']): string | null {
  return firstFlaw(results, ({ observation, reward, done }, step) => {
    const flaw = schemaFlaw(schema, observation, step);
    if (flaw !== null) return flaw;
    if (step === 0) return reward !== null || done ? 'expected a reset without a reward and an end' : null;
    return Number.isFinite(reward) ? null : `step ${step}: expected a finite reward, got ${reward}`;
  });
}

function stateFlaw({ state: schema }: EnvironmentDefinition, states: Play['states']): string | null {
  return firstFlaw(states, ({ episode_id, step_count, ...own }, step) => {
    const flaw = schemaFlaw(schema, own, step);
    if (flaw !== null || (step_count === step && episode_id === EPISODE_ID)) return flaw;
    return `expected step ${step} of \`${EPISODE_ID}\`, got step ${step_count} of \`${episode_id}\``;
  });
}

function schemaFlaw(schema: z.ZodType, value: unknown, step: number): string | null {
  const { error } = schema.safeParse(value);
  return error ? `step ${step}: ${error.issues.map(({ message }) => message).join('; ')}` : null;
}

async function isolationFlaw(
  definition: EnvironmentDefinition,
  plays: readonly Play[],
  options: SelfTestOptions,
): Promise<string | null> {
  const otherSeed = { ...options.resetOptions, seed: SEED + 1 };
  await closeAll(await playTasks(definition, { ...options, resetOptions: otherSeed }));
  for (const { label, session, states } of plays) {
    if (!isDeepStrictEqual(await session.state(), states.at(-1))) {
      return `${label}: its state has changed while another session was played`;
    }
  }
  return null;
}
