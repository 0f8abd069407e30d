import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type StepResult,
} from '@servegym/openenv/definition';
import { BENCHMARK_README } from './readme.ts';
import {
  type BenchmarkAction,
  type BenchmarkObservation,
  type BenchmarkState,
  benchmarkActionSchema,
  benchmarkObservationSchema,
  benchmarkStateSchema,
} from './schema.ts';

/** What the answers tell. */
export interface BenchmarkOptions {
  /**
   * Where the server that answers can be found. Asked for each answer, because a server knows its port only once it
   * listens. Default: `http://` and the name of this machine.
   */
  readonly hostUrl?: () => string;
}

/** One for all: an error of its own for each of thousands of sessions would cost a stack trace each. */
const CLOSED = new Error('The session was closed');

/** One session of `benchmark`. */
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

/**
 * An environment for measuring servers: it waits as long as the action says and tells who answered. Waits of sessions
 * do not hold one another up. It measures real time, so its sessions cannot be replayed and are not kept.
 */
export function benchmarkEnvironment({
  hostUrl = () => `http://${hostname()}`,
}: BenchmarkOptions = {}): EnvironmentDefinition<BenchmarkAction, BenchmarkObservation, BenchmarkState> {
  return defineEnvironment({
    id: 'benchmark',
    version: '1.0.0',
    name: 'benchmark',
    description:
      'Test infrastructure and concurrency: each step waits as long as it is told, then says which server, process and session answered.',
    readme: BENCHMARK_README,
    action: benchmarkActionSchema,
    observation: benchmarkObservationSchema,
    state: benchmarkStateSchema,
    replayable: false,
    create: () => new Benchmark(hostUrl),
  });
}
