import { randomUniform, streamKey } from '../random/counter-random.ts';
import { TICKS_PER_MS, TICKS_PER_US, wholeTicks } from './ticks.ts';

/** Processes in front of an engine that tokenize prompts, answer HTTP and stream tokens, and the CPU time that they take. */
export interface FrontEndOptions {
  /** Processes (vLLM api_server_count), each with a queue of its own. */
  readonly processes: number;
  /** CPU time of a request, ms. */
  readonly perRequestMs: number;
  /** CPU time of a prompt token, us. */
  readonly perPromptTokenUs: number;
  /** CPU time of a streamed token, us. */
  readonly perOutputTokenUs: number;
}

/** Most processes of a front end. */
export const MOST_API_SERVERS = 1024;

/**
 * One process of vLLM 0.32.0's API server on a server CPU, as `benchmarks/run.ts measure-front-end` measures it
 * (docs/running-server.md). A prompt word counts as a token.
 */
export const VLLM_FRONT_END: FrontEndOptions = {
  processes: 1,
  perRequestMs: 2.5,
  perPromptTokenUs: 3.3,
  perOutputTokenUs: 76,
};

/** Iterations of equal numbers of tokens, whose durations grow by equal steps. Ticks. */
export interface StreamedIterations {
  readonly count: number;
  /** Tokens of all of them. */
  readonly tokens: number;
  readonly start: number;
  readonly end: number;
  /** Begin of the last of them. */
  readonly lastStart: number;
}

/**
 * The queue of a single-threaded API server. Its work is of two kinds, in the order in which it comes up: a request that
 * arrives, and the tokens of an iteration that has ended, which are detokenized and streamed. The engine runs in another
 * process and never waits for it. A request reaches the scheduler later by the time that it waits here; the tokens of an
 * iteration reach their clients when all of them have been streamed.
 *
 * With several processes a request is tokenized and streamed by one of them, drawn by seed and request, as the kernel
 * hands out connections. Each streams an equal share of an iteration's tokens.
 *
 * A request that arrives during an iteration is served before the tokens of that iteration. It delays later work, and
 * not these tokens: the end of an iteration is computed when it begins.
 */
export class FrontEnd {
  declare private readonly options: FrontEndOptions;
  declare private readonly key: number;
  /** Tick at which each process has done all that came up before the last iteration's end. */
  declare private readonly free: Float64Array;
  /** Tick at which the clients of each process had the tokens of the last iteration. */
  declare private readonly delivered: Float64Array;
  /** End of the last iteration, and the work of a process with its tokens. */
  private batchEnd = Number.NEGATIVE_INFINITY;
  private batchTicks = 0;

  constructor(options: FrontEndOptions, seed: number) {
    this.options = options;
    this.key = streamKey(seed, 'front end');
    this.free = new Float64Array(options.processes).fill(Number.NEGATIVE_INFINITY);
    this.delivered = new Float64Array(options.processes);
  }

  /** Work with a request of so many prompt tokens, ticks. */
  requestTicks(input: number): number {
    const { perRequestMs, perPromptTokenUs } = this.options;
    return wholeTicks(perRequestMs * TICKS_PER_MS + perPromptTokenUs * TICKS_PER_US * input);
  }

  /** Takes up a request. Requests come in order of arrival, before an iteration that begins later. Answers when its turn came. */
  takeUp(id: number, arrival: number, input: number): number {
    if (arrival >= this.batchEnd) this.streamBatch();
    const process = this.processOf(id);
    const begin = Math.max(this.free[process], arrival);
    this.free[process] = begin + this.requestTicks(input);
    return begin;
  }

  /** Streams the tokens of iterations. No request arrived between the first of them and the begin of the last. */
  stream({ count, tokens, start, end, lastStart }: StreamedIterations): void {
    this.streamBatch();
    const { free, delivered } = this;
    const { perOutputTokenUs, processes } = this.options;
    const work = wholeTicks((tokens / count / processes) * perOutputTokenUs * TICKS_PER_US);
    const earlier = count - 1;
    const firstEnd = start + (2 * (end - start)) / count - (end - lastStart);
    for (let process = 0; process < processes; process++) {
      if (earlier > 0) {
        // Iterations grow longer, so the work waits longest behind that of the first, or of the last.
        free[process] = Math.max(free[process] + earlier * work, firstEnd + earlier * work, lastStart + work);
      }
      delivered[process] = Math.max(free[process], end) + work;
    }
    this.batchEnd = end;
    this.batchTicks = work;
  }

  /** Tick at which the client of a request had its token of the last iteration. */
  deliveredTo(id: number): number {
    return this.delivered[this.processOf(id)];
  }

  /** Moves the origin of the clock, as `Engine.shiftClock`. */
  shiftClock(ticks: number): void {
    this.batchEnd -= ticks;
    for (let process = 0; process < this.free.length; process++) {
      this.free[process] -= ticks;
      this.delivered[process] -= ticks;
    }
  }

  snapshot() {
    const { batchEnd, batchTicks } = this;
    return { free: this.free.slice(), delivered: this.delivered.slice(), batchEnd, batchTicks };
  }

  restore({ free, delivered, batchEnd, batchTicks }: ReturnType<FrontEnd['snapshot']>): void {
    this.free.set(free);
    this.delivered.set(delivered);
    this.batchEnd = batchEnd;
    this.batchTicks = batchTicks;
  }

  /** Does the work with the last iteration's tokens, behind the requests that arrived before its end. */
  private streamBatch(): void {
    const { free, batchEnd, batchTicks } = this;
    if (batchTicks === 0) return;
    for (let process = 0; process < free.length; process++) {
      free[process] = Math.max(free[process], batchEnd) + batchTicks;
    }
    this.batchTicks = 0;
  }

  private processOf(id: number): number {
    const { processes } = this.options;
    return processes === 1 ? 0 : Math.floor(randomUniform(this.key, id, 0) * processes);
  }
}
