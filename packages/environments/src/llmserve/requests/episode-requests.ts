import { TICKS_PER_S } from '@servegym/simulator';
import type { ServeTask } from '../tasks/serve-task.ts';
import { drawPhases, type PhaseSchedule, phaseRequests } from './phase-requests.ts';
import type { PromptPrefixes } from './prompt-prefixes.ts';
import type { RequestList } from './request-source.ts';
import { sourceRequests } from './source-requests.ts';

/**
 * The requests of an episode, sorted into windows, with what else a window brings: its phase and the memory of tenants.
 * Request i is (`arrivalTicks[i]`, `inputTokens[i]`, ...).
 */
export interface EpisodeRequests {
  /** Ticks from the start of the episode, ascending. */
  readonly arrivalTicks: Float64Array;
  readonly inputTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Index into `REQUEST_CLASSES`. */
  readonly classes: Uint8Array;
  /** Requests of window w are `windowStarts[w]` .. `windowStarts[w + 1] - 1`. */
  readonly windowStarts: Int32Array;
  /** Index into the task's phases, for each window. */
  readonly phases: Uint8Array;
  /** Memory of co-located tenants on each GPU, GiB, for each window. */
  readonly tenantGiB: Float64Array;
  /** Prefixes that prompts share, where they are known: the server then caches prefixes. */
  readonly prefixes?: PromptPrefixes;
}

/**
 * Draws the traffic of an episode. Phases, arrivals, lengths, classes and tenants have a random stream each, so that
 * one draw more in one does not shift another. A task with a `source` takes its requests from there.
 */
export function drawRequests(task: ServeTask, seed: number): EpisodeRequests {
  const schedule = drawPhases(task, seed);
  const requests =
    task.source === undefined ? phaseRequests(task, seed, schedule) : sourceRequests(task, seed, task.source);
  return episodeRequests(task, requests, schedule);
}

/** The requests sorted into windows, with what the schedule says of each. */
export function episodeRequests(
  task: ServeTask,
  requests: RequestList,
  schedule: Pick<PhaseSchedule, 'phases' | 'tenantGiB'>,
): EpisodeRequests {
  return {
    arrivalTicks: Float64Array.from(requests.arrivalSeconds).map((at) => Math.round(at * TICKS_PER_S)),
    inputTokens: Int32Array.from(requests.inputTokens),
    outputTokens: Int32Array.from(requests.outputTokens),
    classes: Uint8Array.from(requests.classes),
    windowStarts: windowStarts(task, requests.arrivalSeconds),
    phases: schedule.phases,
    tenantGiB: schedule.tenantGiB,
    ...(requests.prefixes && { prefixes: requests.prefixes }),
  };
}

function windowStarts({ windows, windowSeconds }: ServeTask, arrivalSeconds: readonly number[]): Int32Array {
  const starts = new Int32Array(windows + 1);
  let next = 0;
  for (let w = 0; w < windows; w++) {
    starts[w] = next;
    while (next < arrivalSeconds.length && arrivalSeconds[next] < (w + 1) * windowSeconds) next++;
  }
  starts[windows] = arrivalSeconds.length;
  return starts;
}
