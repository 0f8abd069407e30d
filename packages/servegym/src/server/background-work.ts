import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { type PolicyEpisode, type PolicyStep, type SharedInputs, shareInputs } from '@servegym/agents';
import { findEnvironment } from '@servegym/environments';
import {
  type Job,
  type JobEngine,
  JobError,
  type JobFailure,
  type JobKinds,
  type Json,
  LocalJobs,
} from '@servegym/jobs';
import { type Caller, EnvironmentError } from '@servegym/openenv';
import { stoppedBy } from '../cli/jobs.ts';
import type { PolicyCatalogue, ServedPolicy } from './open-environment.ts';
import type { ChosenAction, ServedEnvironment, ServedWork } from './served-job.ts';

export interface BackgroundLimits {
  readonly threads: number;
  /** Time that a caller waits for a job, s. */
  readonly seconds: number;
  /** Heap of each thread, MB. */
  readonly heapMb: number;
}

/** A thread is kept free for other clients even where there are few cores. */
export function defaultWorkLimits(): BackgroundLimits {
  return { threads: Math.max(2, availableParallelism() - 1), seconds: 30, heapMb: 1024 };
}

const KINDS: JobKinds = { serve: new URL('served-job.ts', import.meta.url).href };

/** Most jobs of one client, and of all, that run or wait. */
const MOST_OF_CLIENT = 8;
const MOST_OF_ALL = 64;
/** Planners give way to the event loop, which answers everybody, where cores are short. */
const NICENESS = 10;
/** Work that no request waits for. */
const SERVER: Caller = { name: 'server', signal: new AbortController().signal };

/** Times `BackgroundLimits.seconds` that work with an engine of its own may take. */
const LENT_TIMES = 10;

/** A job that runs, or waits for a thread; its promise resolves when there is one. */
interface Place extends PromiseWithResolvers<void> {
  readonly client: string;
  isRunning: boolean;
}

/**
 * Does long work on worker threads, so that other clients are served meanwhile. A client that waits may use all threads
 * but one, the limits are those of `BackgroundLimits`, and a job ends when its caller leaves.
 */
export class BackgroundWork {
  readonly #limits: BackgroundLimits;
  readonly #places = new Set<Place>();
  readonly #stop = new AbortController();
  #jobs: LocalJobs | undefined;
  #isLent = false;

  constructor(limits: BackgroundLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#places.size + (this.#isLent ? 1 : 0);
  }

  /** The engine, to share bytes with. Threads start with the first use. */
  get jobs(): LocalJobs {
    const { threads, heapMb } = this.#limits;
    this.#jobs ??= new LocalJobs({ kinds: KINDS, threads, heapMb, attempts: 1, niceness: NICENESS });
    return this.#jobs;
  }

  /**
   * Does a job.
   * @throws EnvironmentError that of the job, `WORK_QUEUE_FULL`, `WORK_TIMEOUT` or `WORK_MEMORY`
   */
  async run(job: Job, caller: Caller = SERVER): Promise<Json> {
    const place = this.#enter(caller.name);
    return this.#limited(this.#limits.seconds, caller, async (signal) => {
      await Promise.race([place.promise, aborted(signal)]);
      const [result] = await this.jobs.run([job], { signal });
      return result!;
    }).finally(() => {
      this.#places.delete(place);
      this.#startNext();
    });
  }

  /**
   * Reserves an engine for work of many jobs, whose shared bytes go with it; one at a time. The answer has the work done:
   * on all threads but one, for at most `LENT_TIMES` the time of other work.
   * @throws EnvironmentError `WORK_QUEUE_FULL`; the work: that of a job, `WORK_TIMEOUT` or `WORK_MEMORY`
   */
  lend(
    kinds: JobKinds,
    caller: Caller,
  ): <Result>(use: (jobs: JobEngine) => Promise<Result>) => Promise<Result> {
    this.requireLendable();
    this.#isLent = true;
    return (use) => {
      const { threads, heapMb, seconds } = this.#limits;
      const jobs = new LocalJobs({
        ...{ kinds, heapMb, attempts: 1, niceness: NICENESS },
        threads: Math.max(1, threads - 1),
      });
      return this.#limited(LENT_TIMES * seconds, caller, (signal) => use(stoppedBy(jobs, signal))).finally(
        async () => {
          this.#isLent = false;
          await jobs.close();
        },
      );
    };
  }

  /** @throws EnvironmentError `WORK_QUEUE_FULL` while an engine is lent */
  requireLendable(): void {
    if (!this.#isLent) return;
    throw new EnvironmentError(
      'WORK_QUEUE_FULL',
      'Expected one request of this kind at a time, and another is worked on. Try again when it is done.',
    );
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('The server is shutting down'));
    await this.#jobs?.close();
  }

  #enter(client: string): Place {
    const ofClient = [...this.#places].filter((place) => place.client === client).length;
    if (ofClient >= MOST_OF_CLIENT || this.#places.size >= MOST_OF_ALL)
      throw new EnvironmentError(
        'WORK_QUEUE_FULL',
        `Expected at most ${MOST_OF_CLIENT} long requests of a client and ${MOST_OF_ALL} in all, got one more. Wait for an answer, then try again.`,
      );
    const place: Place = { ...Promise.withResolvers<void>(), client, isRunning: false };
    this.#places.add(place);
    this.#startNext();
    return place;
  }

  /** Gives free threads to the clients with the fewest running jobs, in the order of their arrival. */
  #startNext(): void {
    const { threads } = this.#limits;
    const mostOfClient = Math.max(1, threads - 1);
    const places = [...this.#places];
    const runningOf = ({ client }: Place) =>
      places.filter((place) => place.isRunning && place.client === client).length;
    for (let free = threads - places.filter(({ isRunning }) => isRunning).length; free > 0; free--) {
      const waiting = places.filter((place) => !place.isRunning && runningOf(place) < mostOfClient);
      const least = Math.min(...waiting.map(runningOf));
      const next = waiting.find((place) => runningOf(place) === least);
      if (next === undefined) return;
      next.isRunning = true;
      next.resolve();
    }
  }

  /** Does work that ends when its caller leaves, the server stops, or the time is over. Its errors are for the client. */
  async #limited<Result>(
    seconds: number,
    caller: Caller,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const timeout = AbortSignal.timeout(seconds * 1000);
    const signal = AbortSignal.any([caller.signal, timeout, this.#stop.signal]);
    try {
      return await work(signal);
    } catch (error) {
      if (timeout.aborted && signal.reason === timeout.reason) {
        throw new EnvironmentError(
          'WORK_TIMEOUT',
          `The work took longer than the ${seconds} s that this server allows. Ask for less, or try again when the server is less busy.`,
        );
      }
      throw error instanceof JobError && error.failure !== undefined ? this.#failureOf(error.failure) : error;
    }
  }

  #failureOf({ isInputError, code, message }: JobFailure): Error {
    if (isInputError === true && code !== undefined) return new EnvironmentError(code, message);
    if (code !== 'ERR_WORKER_OUT_OF_MEMORY') return new Error(message);
    return new EnvironmentError(
      'WORK_MEMORY',
      `The work needed more than the ${this.#limits.heapMb} MB of memory that this server allows. Ask for less.`,
    );
  }
}

async function aborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

export type BackgroundEnvironment = ReturnType<typeof backgroundEnvironment>;

/** The long work of one environment of a server, done on worker threads. Its results are those of this process. */
export function backgroundEnvironment(threads: BackgroundWork, environment: ServedEnvironment) {
  /** Inputs that were shared, by what they are. */
  const sharedInputs = new Map<string, Promise<SharedInputs>>();
  return { run };

  /** @param reset options of the episode: its task and its trace are shared where they are the server's own */
  async function run(
    reset: Readonly<Record<string, unknown>>,
    work: ServedWork,
    caller?: Caller,
  ): Promise<unknown> {
    const shared = await share(reset);
    const input = { environment: { ...environment, shared }, reset, work };
    const job = { kind: 'serve', input: input as unknown as Json, shared: Object.values(shared) };
    return threads.run(job, caller);
  }

  async function share({ task_id, trace }: Readonly<Record<string, unknown>>): Promise<SharedInputs> {
    const entry = findEnvironment(environment.name);
    if (!entry?.takes.includes('task')) return {};
    const taskId = task_id as string | number | undefined;
    // Columns go with each job.
    const key = JSON.stringify([taskId, typeof trace === 'string' ? trace : null]);
    const known = sharedInputs.get(key) ?? shareInputs(threads.jobs, entry, { taskId, scenario: { trace } });
    sharedInputs.set(key, known);
    return known;
  }
}

/** A policy that chooses its actions on a worker thread. */
function backgroundPolicy(name: string, environment: BackgroundEnvironment): ServedPolicy {
  let episode: PolicyEpisode = { taskId: '', seed: 0 };
  let steps: PolicyStep<unknown, unknown>[] = [];
  let chosen: ChosenAction | undefined;
  return {
    name,
    reset(next) {
      [episode, steps, chosen] = [next, [], undefined];
    },
    watch(step) {
      steps[step.stepIndex] = step;
    },
    async act(step, caller) {
      const planned = chosen?.plan?.[step.stepIndex];
      if (planned !== undefined) return planned;
      steps[step.stepIndex] = step;
      const { resetOptions, taskId } = episode;
      const seen = steps.slice(0, step.stepIndex + 1);
      const work = { kind: 'choose-action', policy: name, episode, steps: seen } as const;
      const answer = await environment.run({ ...resetOptions, task_id: taskId }, work, caller);
      chosen = answer as ChosenAction;
      return chosen.action;
    },
    explain: () => chosen?.explanation,
  };
}

/** The same policies, of which those that plan do so on worker threads. */
export function inBackground(catalogue: PolicyCatalogue, background: BackgroundEnvironment): PolicyCatalogue {
  return {
    ...catalogue,
    create: (name) =>
      catalogue.planners?.includes(name) ? backgroundPolicy(name, background) : catalogue.create(name),
  };
}
