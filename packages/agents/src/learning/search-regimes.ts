import { llmserve, type ServeAction, ServeEpisode } from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { type SharedInputs, shareInputs, takeInputs } from '../core/shared-inputs.ts';
import { type RegimeCenter, type Regimes, RegimeTracker } from '../policies/regime-policy.ts';
import type { ActionCodec } from './action-codec.ts';
import {
  probabilitiesAround,
  type SearchPoint,
  type SearchRun,
  searchPoints,
} from './cross-entropy-search.ts';
import { SERVE_LEARNER } from './learners.ts';
import { knownTask } from './trained-for.ts';

/** Regimes that are told apart. More of them would hardly be met often enough to be told better from worse. */
const REGIMES = 3;
/** Tables of a generation, how many of the best the next one goes by, and traces that each is played on. */
const POPULATION = 24;
const ELITE = 5;
const TRACES = 2;
const SMOOTHING = 0.3;
/** Centers to begin with: quiet, busy and long prompts, ln(1 + arrivals a second) and ln(1 + tokens). */
const CENTERS: readonly RegimeCenter[] = [
  { arrivals: Math.log1p(5), prompts: Math.log1p(250) },
  { arrivals: Math.log1p(18), prompts: Math.log1p(250) },
  { arrivals: Math.log1p(4), prompts: Math.log1p(2000) },
];
const CENTER_DEVIATION = 0.4;

/** A table to be tried, and the traces to try it on. */
export interface RegimeTrial {
  readonly taskId: string;
  readonly regimes: Regimes;
  readonly traces: readonly number[];
}

export interface RegimeSearchOptions extends SearchRun {
  readonly taskId: string;
  /** Plays trials and answers the mean return of each, in their order. */
  readonly play: (trials: readonly RegimeTrial[]) => Promise<readonly number[]>;
}

/** Mean return of a table. */
export function playRegimes({ taskId, regimes, traces }: RegimeTrial): number {
  const tracker = new RegimeTracker(regimes.map(({ center }) => center));
  let total = 0;
  for (const trace of traces) {
    const episode = new ServeEpisode(knownTask(llmserve, taskId), trace);
    tracker.reset();
    while (!episode.done) episode.step(regimes[tracker.see(episode.observation())].action);
    total += episode.totals.reward;
  }
  return total / traces.length;
}

/**
 * Searches a configuration for each regime of traffic, and where the regimes lie, with the cross-entropy method on the
 * training split. It begins around the best constant configuration of the task, where one is recorded. All tables of a
 * generation play the same traces, and every generation others.
 */
export async function searchRegimes(
  options: RegimeSearchOptions,
): Promise<{ readonly regimes: Regimes; readonly steps: number }> {
  const { taskId, play } = options;
  const task = knownTask(llmserve, taskId);
  const codec = SERVE_LEARNER.codec(task);
  const [first] = llmserve.anchors.configurations(task);
  const { point, steps } = await searchPoints(
    {
      ...{ population: POPULATION, elite: ELITE, smoothing: SMOOTHING },
      bins: CENTERS.flatMap(() => firstProbabilities(codec, first!)),
      numbers: CENTERS.flatMap(({ arrivals, prompts }) =>
        [arrivals, prompts].map((mean) => ({ mean, deviation: CENTER_DEVIATION })),
      ),
      ...{ traces: TRACES, windows: task.windows },
      play: (points, traces) =>
        play(points.map((each) => ({ taskId, traces, regimes: regimesOf(codec, each) }))),
    },
    options,
  );
  return { regimes: regimesOf(codec, point), steps };
}

function firstProbabilities(codec: ActionCodec<ServeAction>, action: ServeAction): number[][] {
  return codec.encode(action).map((inForce, head) => probabilitiesAround(inForce, codec.headSizes[head]));
}

function regimesOf(codec: ActionCodec<ServeAction>, { bins, numbers }: SearchPoint): Regimes {
  const heads = codec.headSizes.length;
  return Array.from({ length: REGIMES }, (_, regime) => ({
    center: { arrivals: numbers[2 * regime], prompts: numbers[2 * regime + 1] },
    action: codec.decode(bins.slice(regime * heads, (regime + 1) * heads)),
  }));
}

/** The job `play-regimes`: plays a table of regimes; answers its mean return. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { shared, ...trial } = input as unknown as RegimeTrial & { readonly shared: SharedInputs };
  await takeInputs(llmserve, shared, {}, context);
  return playRegimes(trial);
}

/** Mean return of each trial, a trial a job. */
export async function playRegimesWithJobs(
  jobs: JobEngine,
  trials: readonly RegimeTrial[],
): Promise<number[]> {
  const shared = await shareInputs(jobs, llmserve, trials[0]!);
  const returns = await jobs.run(
    trials.map((trial) => ({
      kind: 'play-regimes',
      input: { ...trial, shared } as unknown as Json,
      shared: Object.values(shared),
    })),
  );
  return returns as number[];
}
