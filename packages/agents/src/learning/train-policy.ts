import { type FleetTaskId, findEnvironment, llmserve } from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { type JobInputs, jobsOn, takeInputs } from '../core/playable.ts';
import { type TunedConstant, tuneConstant } from './coordinate-search.ts';
import { type SearchGeneration, searchDemand } from './cross-entropy-search.ts';
import {
  ANY_SERVER,
  encodeJsonPolicy,
  encodeNetwork,
  FLEET_LEARNER,
  knownTask,
  PRECISION_LEARNER,
} from './learners.ts';
import { type PpoUpdate, trainPpo } from './ppo.ts';
import { improvePrecisions } from './precision-rollouts.ts';
import { finalReturn, learningTaskOf, type MetricsLine, type TrainingRun } from './training-run.ts';

/** Means of a training: none of them changes what is learned. */
export interface TrainingOptions {
  /** Threads that play rollouts of PPO. Default 1. */
  readonly threads?: number;
  /** Ends the training after the update, generation or knob at hand; what was learned is kept. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: TrainingProgress) => void;
}

/** A step of a training that has a line of metrics. */
type MeasuredStep =
  | { readonly kind: 'update'; readonly update: PpoUpdate; readonly metrics: MetricsLine }
  | { readonly kind: 'generation'; readonly generation: SearchGeneration; readonly metrics: MetricsLine };

/** One step of a training. */
export type TrainingProgress = {
  /** Share of the whole training that is done. 0 where it cannot be told. */
  readonly share: number;
} & (MeasuredStep | { readonly kind: 'constant'; readonly found: TunedConstant });

/** A policy, and how its training went. */
export interface TrainedRun {
  /** Windows played. */
  readonly steps: number;
  /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
  readonly finalReturn: number | null;
  /** One line for each update or generation; none for `static`. */
  readonly metrics: readonly MetricsLine[];
  /** File for agents: safetensors of a network, else JSON. */
  readonly policy: Uint8Array;
}

/** Trains a policy. The same run gives the same file, bit for bit, wherever it is done. */
export async function trainPolicy(run: TrainingRun, options: TrainingOptions = {}): Promise<TrainedRun> {
  const metrics: MetricsLine[] = [];
  const onMetrics: OnMetrics = (step) => {
    metrics.push(step.metrics);
    options.onProgress?.({ ...step, share: Math.min(1, step.metrics.steps / run.steps) });
  };
  if (run.algorithm === 'static') return trainConstant(run, options);
  const learned = await (run.algorithm === 'ppo' ? trainNetwork : searchPolicy)(run, options, onMetrics);
  return { ...learned, finalReturn: finalReturn(metrics), metrics };
}

/** Keeps a line of metrics, and tells of it. */
type OnMetrics = (step: MeasuredStep) => void;

async function trainNetwork(run: TrainingRun, options: TrainingOptions, onMetrics: OnMetrics) {
  const { threads = 1, signal } = options;
  const { algorithm, steps, seed } = run;
  const learningTask = learningTaskOf(run);
  const trained = await trainPpo({
    ...{ ...learningTask, steps, seed, threads, signal },
    onUpdate: (update) => onMetrics({ kind: 'update', update, metrics: metricsOf(update) }),
  });
  const policy = learningTask.encodeActor(trained.weights, { algorithm, steps: trained.steps, seed });
  return { steps: trained.steps, policy };
}

/** What is learned in rounds: parameters of an autoscaler, or the choice of precisions on any server. */
async function searchPolicy(run: TrainingRun, { signal }: TrainingOptions, onMetrics: OnMetrics) {
  const { task, steps, seed, algorithm } = run;
  const plan = {
    ...{ taskId: task, steps, seed, signal },
    onGeneration(generation: SearchGeneration) {
      const { steps: played, meanReturn, eliteReturn } = generation;
      const elite = eliteReturn && { elite_return: eliteReturn };
      onMetrics({
        ...{ kind: 'generation', generation },
        metrics: { steps: played, mean_return: meanReturn, ...elite },
      });
    },
  };
  const trainingOf = (played: number) => ({ algorithm, steps: played, seed });
  if (algorithm === 'rollout') {
    const { weights, steps: played } = await improvePrecisions(plan);
    const network = { taskId: ANY_SERVER, weights, training: trainingOf(played) };
    return { steps: played, policy: encodeNetwork(PRECISION_LEARNER, network) };
  }
  const { steps: played, ...found } = await searchDemand(task as FleetTaskId, plan);
  const json = encodeJsonPolicy(FLEET_LEARNER.environment, task, found, trainingOf(played));
  return { steps: played, policy: Buffer.from(json) };
}

/** The best configuration that never changes. */
async function trainConstant(
  { task: taskId, seed }: TrainingRun,
  { signal, onProgress }: TrainingOptions,
): Promise<TrainedRun> {
  const { action, meanReturn, episodes } = await tuneConstant({
    ...{ taskId, seed, signal },
    onProgress: (found) => onProgress?.({ kind: 'constant', found, share: 0 }),
  });
  const training = { algorithm: 'static', episodes, mean_return: meanReturn, seed };
  const policy = Buffer.from(encodeJsonPolicy(llmserve, taskId, { action }, training));
  const steps = episodes * knownTask(llmserve, taskId).windows;
  return { steps, finalReturn: meanReturn, metrics: [], policy };
}

/** Figures of an update as metrics name them, less the error that only tests look at. */
function metricsOf({ firstRatioError: _, minibatches, ...figures }: PpoUpdate): MetricsLine {
  const named = Object.entries({ ...figures, minibatches }).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(named) as MetricsLine;
}

/** A run for a thread or another machine. */
interface TrainPolicyInput extends JobInputs {
  readonly run: Omit<TrainingRun, 'table'>;
}

/** A `TrainedRun` as JSON, its file in base64. */
type TrainPolicyOutput = Omit<TrainedRun, 'policy'> & { readonly policy: string };

/** The job `train-policy`: trains a policy on one thread. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { run, shared } = input as unknown as TrainPolicyInput;
  const environment = findEnvironment(run.environment)!;
  const { table } = await takeInputs(environment, shared, { ...run.scenario }, context);
  const { policy, ...trained } = await trainPolicy(
    { ...run, ...(table && { table }) },
    { onProgress: ({ share }) => context.report(share) },
  );
  const encoded = Buffer.from(policy).toString('base64');
  return { ...trained, policy: encoded } satisfies TrainPolicyOutput as unknown as Json;
}

interface SeedsOptions {
  readonly onProgress?: (share: number) => void;
  /** Called as each training ends: a run that is stopped keeps those. */
  readonly onTrained: (seed: number, trained: TrainedRun) => void;
}

/** Trains with each of several seeds, a job each: the results are those of `trainPolicy`. */
export async function trainSeeds(
  jobs: JobEngine,
  { table, ...run }: Omit<TrainingRun, 'seed'>,
  seeds: readonly number[],
  { onProgress, onTrained }: SeedsOptions,
): Promise<void> {
  const own = { taskId: run.task, scenario: { ...run.scenario }, table };
  const inputs = seeds.map((seed): Omit<TrainPolicyInput, keyof JobInputs> => ({ run: { ...run, seed } }));
  const entry = findEnvironment(run.environment)!;
  await jobs.run(await jobsOn(jobs, 'train-policy', entry, own, inputs), {
    onProgress: ({ share }) => onProgress?.(share),
    onResult(output, index) {
      const { policy, ...trained } = output as unknown as TrainPolicyOutput;
      onTrained(seeds[index], { ...trained, policy: Buffer.from(policy, 'base64') });
    },
  });
}
