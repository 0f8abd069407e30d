import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { JobContext, Json } from './job.ts';

/** Input of the job kinds of the tests. */
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

/** A result that depends on the whole input. */
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
  let state = seed;
  for (let i = 0; i < requests; i++) state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
  return { completed: requests, state };
}
