import {
  type AsyncPolicy,
  type PolicyEpisode,
  type PolicyStep,
  type SharedInputs,
  shareInputs,
} from '@servegym/agents';
import { findEnvironment } from '@servegym/environments';
import type { Json } from '@servegym/jobs';
import type { Caller } from '@servegym/openenv';
import type { BackgroundWork } from './background-work.ts';
import type { ChosenAction, ServedEnvironment, ServedWork } from './served-job.ts';

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

  /** @param reset options of the episode: its task and its trace are shared where they are the server's own */
  async run(reset: Readonly<Record<string, unknown>>, work: ServedWork, caller?: Caller): Promise<unknown> {
    const shared = await this.#share(reset);
    const input = { environment: { ...this.#environment, shared }, reset, work };
    const job = { kind: 'serve', input: input as unknown as Json, shared: Object.values(shared) };
    return this.#work.run(job, caller);
  }

  async #share({ task_id, trace }: Readonly<Record<string, unknown>>): Promise<SharedInputs> {
    const entry = findEnvironment(this.#environment.name);
    if (!entry?.takes.includes('task')) return {};
    const taskId = task_id as string | number | undefined;
    const key = JSON.stringify([taskId, trace]);
    const known =
      this.#shared.get(key) ?? shareInputs(this.#work.jobs, entry, { taskId, scenario: { trace } });
    this.#shared.set(key, known);
    return known;
  }
}

/** A policy that chooses its actions on a worker thread. */
export class BackgroundPolicy implements AsyncPolicy<unknown, unknown> {
  readonly name: string;
  readonly #environment: BackgroundEnvironment;
  #episode: PolicyEpisode = { taskId: '', seed: 0 };
  #steps: PolicyStep<unknown, unknown>[] = [];
  #chosen: ChosenAction | undefined;

  constructor(name: string, environment: BackgroundEnvironment) {
    this.name = name;
    this.#environment = environment;
  }

  reset(episode: PolicyEpisode): void {
    this.#episode = episode;
    this.#steps = [];
    this.#chosen = undefined;
  }

  watch(step: PolicyStep<unknown, unknown>): void {
    this.#steps[step.stepIndex] = step;
  }

  /** @param caller the client that waits */
  async act(step: PolicyStep<unknown, unknown>, caller?: Caller): Promise<unknown> {
    const planned = this.#chosen?.plan?.[step.stepIndex];
    if (planned !== undefined) return planned;
    this.watch(step);
    const { resetOptions, taskId } = this.#episode;
    const steps = this.#steps.slice(0, step.stepIndex + 1);
    const work = { kind: 'choose-action', policy: this.name, episode: this.#episode, steps } as const;
    const chosen = await this.#environment.run({ ...resetOptions, task_id: taskId }, work, caller);
    this.#chosen = chosen as ChosenAction;
    return this.#chosen.action;
  }

  explain(): unknown {
    return this.#chosen?.explanation;
  }
}
