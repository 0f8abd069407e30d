import { type FleetTaskId, findEnvironment, llmserve } from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { type JobInputs, jobsOn, takeInputs } from '../core/playable.ts';
import { type TunedConstant, tuneConstant } from './coordinate-search.ts';
import { type SearchGeneration, searchDemand } from './cross-entropy-search.ts';
import { haveDemonstrated } from './demonstrate.ts';
import { DISTILLATION_ROUNDS, type DistillationRound, distill } from './distill.ts';
import {
  ANY_SERVER,
  encodeJsonPolicy,
  encodeNetwork,
  FLEET_LEARNER,
  knownTask,
  PRECISION_LEARNER,
} from './learners.ts';
import { encodeOnnxActor } from './onnx-actor.ts';
import { type PpoStart, type PpoUpdate, trainPpo } from './ppo.ts';
import { improvePrecisions } from './precision-rollouts.ts';
import { type ActorWeights, decodeActor } from './trained-actor.ts';
import {
  encodeStoppedRun,
  finalReturn,
  isNetworkAlgorithm,
  learningTaskOf,
  type MetricsLine,
  type StoppingPoint,
  type TrainingRun,
} from './training-run.ts';

/** Means of a training: none of them changes what is learned. */
export interface TrainingOptions {
  /** Threads that play rollouts of PPO. Default 1. */
  readonly threads?: number;
  /** Plays the lessons of `distill`; this thread does when it is left out. */
  readonly jobs?: JobEngine;
  /** Point to go on from, or a clone that `distill` goes on from without lessons. */
  readonly start?: StoppingPoint | { readonly actor: ActorWeights };
  /** Ends the training after the update, round, generation or knob at hand; what was learned is kept. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: TrainingProgress) => void;
}

/** One step of a training. */
export type TrainingProgress = {
  /** Share of the whole training that is done; lessons count as half. 0 where it cannot be told. */
  readonly share: number;
} & (
  | {
      readonly kind: 'update';
      readonly update: PpoUpdate;
      readonly metrics: MetricsLine;
      /** File to go on from. */
      readonly checkpoint: () => Uint8Array;
    }
  | { readonly kind: 'lesson'; readonly lesson: DistillationRound; readonly checkpoint: () => Uint8Array }
  | { readonly kind: 'generation'; readonly generation: SearchGeneration; readonly metrics: MetricsLine }
  | { readonly kind: 'constant'; readonly found: TunedConstant }
);

/** A policy, and how its training went. */
export interface TrainedRun {
  /** Windows played; 0 for a `distill` that was stopped before its last lesson. */
  readonly steps: number;
  /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
  readonly finalReturn: number | null;
  /** One line for each update or generation; none for `static`. */
  readonly metrics: readonly MetricsLine[];
  readonly files: PolicyFiles;
}

/** Files of a policy. Networks have all of them; the policy comes last, so that it is written last. */
export interface PolicyFiles {
  /** For ONNX runtimes. */
  readonly onnx?: Uint8Array;
  /** To go on from. */
  readonly checkpoint?: Uint8Array;
  /** For agents: safetensors of a network, else JSON. */
  readonly policy: Uint8Array;
}

/** Share of a training that lessons stand for: how long a teacher takes beside PPO is not known in advance. */
const LESSONS_SHARE = 0.5;

/** Trains a policy. The same run gives the same files, bit for bit, wherever it is done and however often it stopped. */
export async function trainPolicy(run: TrainingRun, options: TrainingOptions = {}): Promise<TrainedRun> {
  if (isNetworkAlgorithm(run.algorithm)) return trainNetwork(run, options);
  return run.algorithm === 'static' ? trainConstant(run, options) : searchPolicy(run, options);
}

/** PPO, after the lessons of a teacher where there are any. */
async function trainNetwork(run: TrainingRun, options: TrainingOptions): Promise<TrainedRun> {
  const { threads = 1, start, signal, onProgress } = options;
  const { algorithm, steps, seed } = run;
  const learningTask = learningTaskOf(run);
  const checkpointOf = (stoppedAt: StoppingPoint) => encodeStoppedRun({ run, stoppedAt });
  const filesOf = (weights: ActorWeights, learned: number, stoppedAt: StoppingPoint): PolicyFiles => ({
    onnx: encodeOnnxActor(weights, learningTask.metadata),
    checkpoint: checkpointOf(stoppedAt),
    policy: learningTask.encodeActor(weights, { algorithm, steps: learned, seed }),
  });

  let ppoStart: PpoStart = {};
  let lessonsShare = 0;
  if (start !== undefined && !('shown' in start)) {
    ppoStart = start;
  } else if (algorithm === 'distill') {
    const { actor, shown } = await learnFromTeacher(run, options, checkpointOf);
    if (shown.length < run.lessons!.episodes) {
      return { steps: 0, finalReturn: null, metrics: [], files: filesOf(actor, 0, { shown }) };
    }
    ppoStart = { actor };
    lessonsShare = LESSONS_SHARE;
  }

  const metrics: MetricsLine[] = [];
  const trained = await trainPpo({
    ...{ ...learningTask, steps, seed, threads, start: ppoStart, signal },
    onUpdate(update, checkpoint) {
      const line = metricsOf(update);
      metrics.push(line);
      onProgress?.({
        ...{ kind: 'update', update, metrics: line },
        share: lessonsShare + (1 - lessonsShare) * Math.min(1, update.steps / steps),
        checkpoint: () => checkpointOf({ checkpoint: checkpoint() }),
      });
    },
  });
  const files = filesOf(trained.weights, trained.steps, { checkpoint: trained.checkpoint });
  return { steps: trained.steps, finalReturn: finalReturn(metrics), metrics, files };
}

/** A clone of the teacher, and all that the lessons have shown: fewer than planned where the run was stopped. */
async function learnFromTeacher(
  run: TrainingRun,
  { jobs, start, signal, onProgress }: TrainingOptions,
  checkpointOf: (stoppedAt: StoppingPoint) => Uint8Array,
) {
  const { teacher, ...lessons } = run.lessons!;
  let shown = start !== undefined && 'shown' in start ? start.shown : [];
  const actor = await distill({
    ...{ ...lessons, taskId: run.task, seed: run.seed, shown, signal },
    demonstrate: (request) => haveDemonstrated(jobs, teacher, request),
    onRound(lesson) {
      shown = lesson.shown;
      onProgress?.({
        ...{ kind: 'lesson', lesson, share: (LESSONS_SHARE * lesson.round) / DISTILLATION_ROUNDS },
        checkpoint: () => checkpointOf({ shown: lesson.shown }),
      });
    },
  });
  return { actor, shown };
}

/** What is learned in rounds: parameters of an autoscaler, or the choice of precisions on any server. */
async function searchPolicy(run: TrainingRun, options: TrainingOptions): Promise<TrainedRun> {
  const { task, steps, seed, algorithm } = run;
  const { signal, onProgress } = options;
  const metrics: MetricsLine[] = [];
  const plan = {
    ...{ taskId: task, steps, seed, signal },
    onGeneration(generation: SearchGeneration) {
      const { steps: played, meanReturn, eliteReturn } = generation;
      const line = {
        steps: played,
        mean_return: meanReturn,
        ...(eliteReturn && { elite_return: eliteReturn }),
      };
      metrics.push(line);
      onProgress?.({ kind: 'generation', generation, metrics: line, share: Math.min(1, played / steps) });
    },
  };
  const trainingOf = (played: number) => ({ algorithm, steps: played, seed });
  const done = (policy: Uint8Array, played: number) => ({
    ...{ steps: played, finalReturn: finalReturn(metrics), metrics, files: { policy } },
  });
  if (algorithm === 'rollout') {
    const { weights, steps: played } = await improvePrecisions(plan);
    const network = { taskId: ANY_SERVER, weights, training: trainingOf(played) };
    return done(encodeNetwork(PRECISION_LEARNER, network), played);
  }
  const { steps: played, ...found } = await searchDemand(task as FleetTaskId, plan);
  const json = encodeJsonPolicy(FLEET_LEARNER.environment, task, found, trainingOf(played));
  return done(Buffer.from(json), played);
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
  return { steps, finalReturn: meanReturn, metrics: [], files: { policy } };
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

/** A `TrainedRun` as JSON, its files in base64. */
type TrainPolicyOutput = Omit<TrainedRun, 'files'> & { readonly files: Readonly<Record<string, string>> };

/** The job `train-policy`: trains a policy on one thread; `distill` goes on from the network in its file, without lessons. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { run, shared, file } = input as unknown as TrainPolicyInput;
  const environment = findEnvironment(run.environment)!;
  const { table } = await takeInputs(environment, shared, { ...run.scenario }, context);
  const start = file === null ? undefined : { actor: decodeActor(context.shared(file)).weights };
  const { files, ...trained } = await trainPolicy(
    { ...run, ...(table && { table }) },
    { start, onProgress: ({ share }) => context.report(share) },
  );
  const encoded = Object.entries(files).map(([kind, file]) => [kind, Buffer.from(file).toString('base64')]);
  return { ...trained, files: Object.fromEntries(encoded) } satisfies TrainPolicyOutput as unknown as Json;
}

export interface SeedsOptions {
  /** Network that `distill` goes on from, without lessons: a file of `encodeActor`. */
  readonly clone?: Uint8Array;
  readonly onProgress?: (share: number) => void;
  /** Called as each training ends: a run that is stopped keeps those. */
  readonly onTrained: (seed: number, trained: TrainedRun) => void;
}

/** Trains with each of several seeds, a job each: the results are those of `trainPolicy`. */
export async function trainSeeds(
  jobs: JobEngine,
  { table, ...run }: Omit<TrainingRun, 'seed'>,
  seeds: readonly number[],
  { clone, onProgress, onTrained }: SeedsOptions,
): Promise<void> {
  const own = { taskId: run.task, scenario: { ...run.scenario }, table };
  const inputs = seeds.map((seed): Omit<TrainPolicyInput, keyof JobInputs> => ({ run: { ...run, seed } }));
  const entry = findEnvironment(run.environment)!;
  await jobs.run(await jobsOn(jobs, 'train-policy', entry, own, inputs, clone), {
    onProgress: ({ share }) => onProgress?.(share),
    onResult(output, index) {
      const { files, ...trained } = output as unknown as TrainPolicyOutput;
      const { policy, ...others } = Object.fromEntries(
        Object.entries(files).map(([kind, file]) => [kind, Buffer.from(file, 'base64')]),
      );
      onTrained(seeds[index], { ...trained, files: { ...others, policy: policy! } });
    },
  });
}
