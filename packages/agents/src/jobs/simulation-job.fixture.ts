import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { findProfile, RandomStream, simulateTrace, summarize, type Trace } from '@servegym/simulator';
import type { JobContext, Json } from './job.ts';

/** What the job kinds of the tests are told. */
export interface SimulationInput {
  readonly seed: number;
  readonly requests: number;
  /** Throws instead. */
  readonly fails?: string;
  /** Answers how many bytes were shared with it. */
  readonly readsShared?: string;
  /** Waits before it begins, and says that it has, ms. */
  readonly pauseMs?: number;
  /** Waits until there is this file, and says that it does. */
  readonly waitsFor?: string;
  /** Ends its thread. */
  readonly exits?: boolean;
}

/** A small simulation, as jobs are made of. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { seed, requests, fails, readsShared, pauseMs, waitsFor, exits } =
    input as unknown as SimulationInput;
  if (fails !== undefined) throw new RangeError(fails);
  if (readsShared !== undefined) return context.shared(readsShared).length;
  if (exits === true) process.exit(7);
  if (waitsFor !== undefined) {
    context.report(0.5);
    while (!existsSync(waitsFor)) await pause(20);
  }
  if (pauseMs !== undefined) {
    context.report(0.5);
    await pause(pauseMs);
  }
  const random = new RandomStream(seed, 'arrivals');
  const arrivalMs = new Float64Array(requests);
  for (let i = 1; i < requests; i++) arrivalMs[i] = arrivalMs[i - 1]! + 200 * random.uniform();
  const trace: Trace = {
    source: `seed ${seed}`,
    arrivalMs,
    inputTokens: Int32Array.from(arrivalMs, () => 1 + Math.floor(2000 * random.uniform())),
    outputTokens: Int32Array.from(arrivalMs, () => 1 + Math.floor(300 * random.uniform())),
  };
  const run = simulateTrace(trace, { profile: findProfile('a100-40gb-llama-3-8b'), seed });
  return {
    completed: run.completed,
    iterations: run.counters.iterations,
    ttft: { ...summarize(run.ttftMs) },
  };
}
