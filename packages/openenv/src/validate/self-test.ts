import { isDeepStrictEqual } from 'node:util';
import type { StateBody } from '../protocol/bodies.ts';
import type { EnvironmentDefinition, StepResult, TaskDescription } from '../protocol/definition.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import { actionReader, toJsonSchema } from '../protocol/schemas.ts';
import { environmentTools } from '../server/tools.ts';
import { Session } from '../sessions/session.ts';
import { type Criterion, type Finding, notApplicable, unless } from './check.ts';
import { sampleValue } from './sample-value.ts';

/** Seed of the episodes of a self-test. */
const SEED = 0;
const EPISODE_ID = 'self-test';

export interface SelfTestOptions {
  /** An action of every step. Default: the task's `default_action`, or one made from the schema. */
  readonly action?: Readonly<Record<string, unknown>>;
  /** Options of every reset. */
  readonly resetOptions?: Readonly<Record<string, unknown>>;
  /** Steps of each episode. Default 3. */
  readonly steps?: number;
}

/** Findings on an environment that was played without a server. */
export interface SelfTestReport {
  readonly environment: string;
  readonly version: string;
  readonly passed: boolean;
  readonly criteria: readonly Criterion[];
  /** The last observation and state, of the last task. */
  readonly observation: object | null;
  readonly state: object | null;
}

/** One episode of a task, as far as it was played. */
interface Play {
  /** Name of the task for messages. */
  readonly label: string;
  readonly session: Session;
  readonly results: readonly StepResult<object>[];
  /** State after the reset, then after each step. */
  readonly states: readonly StateBody[];
}

/**
 * Plays an environment in this process: it resets, steps, keeps its state, says who it is, replays and grades. An
 * environment that throws has failed; nothing is thrown.
 */
export async function selfTest<Action, Observation extends object, State extends object>(
  definition: EnvironmentDefinition<Action, Observation, State>,
  options: SelfTestOptions = {},
): Promise<SelfTestReport> {
  const served = definition as unknown as EnvironmentDefinition<unknown, object, object>;
  const criteria: Criterion[] = [];
  const judge = async (id: string, description: string, run: () => Finding | Promise<Finding>) => {
    const finding = await Promise.resolve()
      .then(run)
      .catch((error: Error): Finding => ({ passed: false, details: error.message }));
    criteria.push({ id, description, required: true, ...finding });
    return finding.passed === true;
  };
  let plays: Play[] = [];
  await judge('identity', 'It has an id, a version, a name and tools that agents can call', () =>
    unless(identityFlaw(served)),
  );
  const isPlayable = await judge('episode', 'Each task can be reset and stepped', async () => {
    plays = await playTasks(served, options);
    return { passed: true };
  });
  const played = (run: () => Finding | Promise<Finding>) =>
    isPlayable ? run : () => notApplicable('not judged: no episode could be played');
  await judge(
    'results',
    'Observations are as their schema says; rewards are finite, and null after a reset',
    played(() => unless(firstFlaw(plays, (play) => resultFlaw(served, play)))),
  );
  await judge(
    'state',
    'The state is as its schema says, counts the steps and keeps the episode id',
    played(() => unless(firstFlaw(plays, (play) => stateFlaw(served, play)))),
  );
  await judge(
    'isolation',
    'Another session changes nothing',
    played(async () => unless(await isolationFlaw(served, plays, options))),
  );
  await judge(
    'replay',
    'The same seed and actions give the same episode',
    played(async () => {
      if (served.replayable === false) return notApplicable('the environment does not replay');
      const again = await playTasks(served, options);
      await closeAll(again);
      return unless(firstFlaw(plays, (play, index) => replayFlaw(play, again[index])));
    }),
  );
  await judge(
    'grade',
    'Grades are strictly between 0 and 1',
    played(async () => {
      if (served.grade === undefined) return notApplicable('the environment has no grader');
      for (const { label, session } of plays) {
        const { score } = await served.grade(session.record!);
        if (!(score > 0 && score < 1))
          return unless(`${label}: expected a score inside (0, 1), got ${score}`);
      }
      return { passed: true };
    }),
  );
  await judge(
    'close',
    'Sessions can be closed',
    played(async () => {
      await closeAll(plays);
      return { passed: true };
    }),
  );
  const last = plays.at(-1);
  return {
    environment: served.id,
    version: served.version,
    passed: criteria.every(({ passed }) => passed !== false),
    criteria,
    observation: last?.results.at(-1)?.observation ?? null,
    state: last?.states.at(-1) ?? null,
  };
}

async function playTasks(
  definition: EnvironmentDefinition<unknown, object, object>,
  options: SelfTestOptions,
): Promise<Play[]> {
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
  definition: EnvironmentDefinition<unknown, object, object>,
  task: TaskDescription | null,
  { action, resetOptions = {}, steps = 3 }: SelfTestOptions,
): Promise<Play> {
  const readOptions = resetOptionsReader(definition);
  const readAction = actionReader(definition.action);
  const chosen = action ?? task?.default_action ?? sampleValue(toJsonSchema(definition.action, 'input'));
  const reset = readOptions({
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

async function closeAll(plays: readonly Play[]): Promise<void> {
  for (const { session } of plays) await session.close();
}

function firstFlaw(
  plays: readonly Play[],
  flawOf: (play: Play, index: number) => string | null,
): string | null {
  for (const [index, play] of plays.entries()) {
    const flaw = flawOf(play, index);
    if (flaw !== null) return `${play.label}: ${flaw}`;
  }
  return null;
}

function identityFlaw(definition: EnvironmentDefinition<unknown, object, object>): string | null {
  const nameless = (['id', 'version', 'name', 'description'] as const).find((field) => !definition[field]);
  if (nameless !== undefined) return `expected \`${nameless}\` to be a text that is not empty`;
  environmentTools(definition, 'simulation');
  return null;
}

function resultFlaw(
  { observation: schema }: EnvironmentDefinition<unknown, object, object>,
  { results }: Play,
): string | null {
  for (const [step, { observation, reward, done }] of results.entries()) {
    const read = schema.safeParse(observation);
    if (!read.success) return `step ${step}: ${read.error.issues.map(({ message }) => message).join('; ')}`;
    if (step === 0 && (reward !== null || done)) return 'expected a reset without a reward and an end';
    if (step > 0 && !Number.isFinite(reward)) return `step ${step}: expected a finite reward, got ${reward}`;
  }
  return null;
}

function stateFlaw(
  { state: schema }: EnvironmentDefinition<unknown, object, object>,
  { states }: Play,
): string | null {
  for (const [step, { episode_id, step_count, ...own }] of states.entries()) {
    const read = schema.safeParse(own);
    if (!read.success) return `step ${step}: ${read.error.issues.map(({ message }) => message).join('; ')}`;
    if (step_count !== step || episode_id !== EPISODE_ID)
      return `expected step ${step} of \`${EPISODE_ID}\`, got step ${step_count} of \`${episode_id}\``;
  }
  return null;
}

async function isolationFlaw(
  definition: EnvironmentDefinition<unknown, object, object>,
  plays: readonly Play[],
  options: SelfTestOptions,
): Promise<string | null> {
  const others = await playTasks(definition, {
    ...options,
    resetOptions: { ...options.resetOptions, seed: SEED + 1 },
  });
  await closeAll(others);
  for (const { label, session, states } of plays) {
    if (!isDeepStrictEqual(await session.state(), states.at(-1))) {
      return `${label}: its state has changed while another session was played`;
    }
  }
  return null;
}

function replayFlaw(play: Play, again: Play): string | null {
  const step = play.results.findIndex((result, index) => !isDeepStrictEqual(result, again.results[index]));
  return step < 0 ? null : `step ${step} is another when it is replayed`;
}
