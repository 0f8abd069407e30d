import {
  type AsyncPolicy,
  type PolicyEpisode,
  type PolicyStep,
  type SharedInputs,
  shareInputs,
} from '@servegym/agents';
import { findEnvironment, type RegisteredEnvironment } from '@servegym/environments';
import type { Json } from '@servegym/jobs';
import type { Caller, EpisodeRecord, Grade } from '@servegym/openenv';
import type { PlayedBaseline } from '../baseline-routes.ts';
import type { BackgroundWork } from './background-work.ts';
import type { ChosenAction } from './choose-action-job.ts';
import type { ServedEnvironment } from './served-environment.ts';

/** The long work of one environment of a server, done on worker threads. Its results are those of this process. */
export class BackgroundEnvironment {
  readonly #work: BackgroundWork;
  readonly #environment: ServedEnvironment;
  /** Inputs that were shared, by what they are. */
  readonly #shared = new Map<string, Promise<SharedInputs>>();

  constructor(work: BackgroundWork, environment: ServedEnvironment) {
    this.#work = work;
    this.#environment = environment;
  }

  async grade(record: EpisodeRecord, caller?: Caller): Promise<Grade> {
    return (await this.#run('grade', record.reset, { record }, caller)) as Grade;
  }

  async playBaseline(
    agent: string,
    taskId: string | number,
    seed: number,
    caller: Caller,
  ): Promise<PlayedBaseline> {
    const input = { agent, taskId, seed };
    return (await this.#run('play-baseline', { task_id: taskId }, input, caller)) as PlayedBaseline;
  }

  async chooseAction<Action>(
    policy: string,
    episode: PolicyEpisode,
    steps: readonly PolicyStep<Action, unknown>[],
    caller?: Caller,
  ): Promise<ChosenAction<Action>> {
    const reset = { ...episode.resetOptions, task_id: episode.taskId };
    const input = { policy, episode, steps };
    return (await this.#run('choose-action', reset, input, caller)) as ChosenAction<Action>;
  }

  async #run(
    kind: string,
    reset: Readonly<Record<string, unknown>>,
    input: object,
    caller: Caller | undefined,
  ): Promise<unknown> {
    const entry = findEnvironment(this.#environment.name);
    const shared = entry?.takes.includes('task') ? await this.#share(entry, reset) : {};
    const environment = { ...this.#environment, shared };
    const job = {
      ...{ kind, input: { environment, ...input } as unknown as Json },
      shared: Object.values(shared),
    };
    return this.#work.run(job, caller);
  }

  /** Shares the task and the trace of a reset where they are the server's own. */
  #share(
    entry: RegisteredEnvironment,
    { task_id, trace }: Readonly<Record<string, unknown>>,
  ): Promise<SharedInputs> {
    const taskId = task_id as string | number | undefined;
    const key = JSON.stringify([taskId, trace]);
    const known =
      this.#shared.get(key) ?? shareInputs(this.#work.jobs, entry, { taskId, scenario: { trace } });
    this.#shared.set(key, known);
    return known;
  }
}

/** A policy that chooses its actions on a worker thread. */
export class BackgroundPolicy<Action, Observation> implements AsyncPolicy<Action, Observation> {
  readonly name: string;
  readonly #environment: BackgroundEnvironment;
  #episode: PolicyEpisode = { taskId: '', seed: 0 };
  #steps: PolicyStep<Action, Observation>[] = [];
  #chosen: ChosenAction<Action> | undefined;

  constructor(name: string, environment: BackgroundEnvironment) {
    this.name = name;
    this.#environment = environment;
  }

  reset(episode: PolicyEpisode): void {
    this.#episode = episode;
    this.#steps = [];
    this.#chosen = undefined;
  }

  watch(step: PolicyStep<Action, Observation>): void {
    this.#steps[step.stepIndex] = step;
  }

  act(step: PolicyStep<Action, Observation>): Promise<Action> {
    return this.actFor(step);
  }

  /** Chooses for a client that waits. */
  async actFor(step: PolicyStep<Action, Observation>, caller?: Caller): Promise<Action> {
    const planned = this.#chosen?.plan?.[step.stepIndex];
    if (planned !== undefined) return planned;
    this.watch(step);
    const steps = this.#steps.slice(0, step.stepIndex + 1);
    this.#chosen = await this.#environment.chooseAction(this.name, this.#episode, steps, caller);
    return this.#chosen.action;
  }

  explain(): unknown {
    return this.#chosen?.explanation;
  }
}
