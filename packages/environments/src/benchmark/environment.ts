import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type StepResult,
} from '@servegym/openenv/definition';
import { z } from 'zod';
import type { DefinitionOptions, RegisteredEnvironment } from '../registry.ts';
import { type KnownTask, Tasks } from '../tasks.ts';

/** The longest wait of one step, s. OpenEnv's clients give up on a reply after as long. */
export const LONGEST_WAIT_S = 60;

/** Wait before the answer. */
export const benchmarkActionSchema = z
  .strictObject({
    wait_seconds: z
      .number()
      .min(0)
      .max(LONGEST_WAIT_S)
      .default(0)
      .meta({ description: 'How long to wait before answering, s' }),
  })
  .meta({ title: 'BenchmarkAction', description: 'How long the server takes to answer' });

export type BenchmarkAction = z.infer<typeof benchmarkActionSchema>;

const identity = {
  host_url: z.string().meta({ description: 'The server that answered' }),
  pid: z.int().min(1).meta({ description: 'The process that answered' }),
  session_hash: z.string().length(16).meta({ description: 'Tells sessions apart' }),
};

/** Server, process and session that answered, and the wait. */
export const benchmarkObservationSchema = z
  .object({
    ...identity,
    waited_seconds: z
      .number()
      .min(0)
      .meta({ description: 'How long the step really waited, s; 0 after a reset' }),
    timestamp: z.number().meta({ description: 'When the server answered, seconds since 1970' }),
  })
  .meta({ title: 'BenchmarkObservation', description: 'Who answered, and after how long' });

export type BenchmarkObservation = z.infer<typeof benchmarkObservationSchema>;

/** Totals of the session. */
export const benchmarkStateSchema = z
  .object({
    ...identity,
    resets: z.int().min(0).meta({ description: 'Episodes that the session has started' }),
    total_waited_seconds: z.number().min(0).meta({ description: 'All waits of this episode, s' }),
  })
  .meta({ title: 'BenchmarkState' });

export type BenchmarkState = z.infer<typeof benchmarkStateSchema>;

/** One for all: an error of its own for each of thousands of sessions would cost a stack trace each. */
const CLOSED = new Error('The session was closed');

class Benchmark implements Environment<BenchmarkAction, BenchmarkObservation, BenchmarkState> {
  readonly #hostUrl: () => string;
  readonly #sessionHash = randomUUID().replaceAll('-', '').slice(16);
  readonly #closed = new AbortController();
  #resets = 0;
  #totalWaitedSeconds = 0;

  constructor(hostUrl: () => string) {
    this.#hostUrl = hostUrl;
  }

  reset(): StepResult<BenchmarkObservation> {
    this.#resets++;
    this.#totalWaitedSeconds = 0;
    return { observation: this.#observe(0), reward: null, done: false };
  }

  step({
    wait_seconds: seconds,
  }: BenchmarkAction): StepResult<BenchmarkObservation> | Promise<StepResult<BenchmarkObservation>> {
    if (this.#resets === 0) {
      throw new EnvironmentError('NOT_RESET', 'No episode has been started: call reset first');
    }
    return seconds === 0 ? this.#answer(seconds, 0) : this.#answerLate(seconds);
  }

  state(): BenchmarkState {
    return {
      ...this.#identity(),
      resets: this.#resets,
      total_waited_seconds: this.#totalWaitedSeconds,
    };
  }

  /** Ends the wait under way: nobody is there for its answer. */
  close(): void {
    this.#closed.abort(CLOSED);
  }

  async #answerLate(seconds: number): Promise<StepResult<BenchmarkObservation>> {
    const startedAt = performance.now();
    const endsAt = startedAt + seconds * 1000;
    // A timer may fire up to a millisecond early.
    for (let left = seconds * 1000; left > 0; left = endsAt - performance.now()) {
      await wait(Math.ceil(left), undefined, { signal: this.#closed.signal });
    }
    return this.#answer(seconds, (performance.now() - startedAt) / 1000);
  }

  #answer(seconds: number, waitedSeconds: number): StepResult<BenchmarkObservation> {
    this.#totalWaitedSeconds += waitedSeconds;
    return { observation: this.#observe(waitedSeconds), reward: 1 / (1 + seconds), done: false };
  }

  #observe(waitedSeconds: number): BenchmarkObservation {
    return { ...this.#identity(), waited_seconds: waitedSeconds, timestamp: Date.now() / 1000 };
  }

  #identity() {
    return { host_url: this.#hostUrl(), pid: process.pid, session_hash: this.#sessionHash };
  }
}

const VERSION = '1.0.0';

/**
 * An environment for measuring servers: it waits as long as the action says and tells who answered. Waits of sessions
 * do not hold one another up. It measures real time, so its sessions cannot be replayed and are not kept.
 */
export function benchmarkEnvironment({
  hostUrl = () => `http://${hostname()}`,
}: DefinitionOptions = {}): EnvironmentDefinition<BenchmarkAction, BenchmarkObservation, BenchmarkState> {
  return defineEnvironment({
    id: 'benchmark',
    version: VERSION,
    name: 'benchmark',
    description:
      'Test infrastructure and concurrency: each step waits as long as it is told, then says which server, process and session answered.',
    readme: readFileSync(new URL('./readme.md', import.meta.url), 'utf8'),
    action: benchmarkActionSchema,
    observation: benchmarkObservationSchema,
    state: benchmarkStateSchema,
    replayable: false,
    create: () => new Benchmark(hostUrl),
  });
}

/** An environment that only waits. */
export const benchmark = {
  id: 'benchmark',
  version: VERSION,
  takes: [],
  definition: benchmarkEnvironment,
  tasks: new Tasks<KnownTask>({}),
  actionSchema: benchmarkActionSchema,
  knobs: ['wait_seconds'],
  bins: {},
  features: [],
  serverFeatures: [],
  shifts: [],
  resetOptions: () => z.object({}),
  choose() {
    throw new EnvironmentError('UNKNOWN_TASK', 'Expected no task: `benchmark` has none');
  },
  initialAction: () => benchmarkActionSchema.parse({}),
  steps: () => Number.POSITIVE_INFINITY,
  rewardWeights: () => ({}),
} as const satisfies RegisteredEnvironment<BenchmarkAction, BenchmarkObservation, BenchmarkState>;
