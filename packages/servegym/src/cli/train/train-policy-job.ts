import {
  type ActorWeights,
  DISTILLATION_ROUNDS,
  decodeActor,
  distill,
  encodeOnnxActor,
  encodeRegimeTable,
  type LearningTask,
  playRegimes,
  type RegimeTrial,
  SERVE_FINE_TUNING,
  SERVE_PPO,
  searchRegimes,
  serveLearningTask,
  trainPpo,
  tuneConstant,
} from '@servegym/agents';
import type { ServeScenario } from '@servegym/environments';
import type { JobContext, Json } from '@servegym/jobs';
import { gymTable } from '../arguments/read-table.ts';
import { addSharedTask } from '../jobs/job-task.ts';
import { addSharedTrace } from '../jobs/job-trace.ts';
import { encodeRun } from './checkpoint-file.ts';
import { demonstrateWith } from './demonstrate-with.ts';
import { finalReturn, type MetricsLine } from './learning-curve.ts';
import { LEARNING_TASKS } from './learning-tasks.ts';
import { constantReport } from './search-static.ts';
import { type Algorithm, isNetworkAlgorithm, type Lessons, type NetworkAlgorithm } from './training-plan.ts';
import { generationFigures, learnedFigures } from './training-report.ts';

/** A policy to be learned on a thread or another machine. */
export interface TrainPolicyInput {
  readonly environment: string;
  readonly task: string;
  readonly algorithm: Algorithm;
  /** Windows to learn from, where the algorithm can tell in advance. */
  readonly steps: number;
  readonly seed: number;
  /** `distill`: whom to learn from first, or the shared bytes of a network that has. */
  readonly start?: Lessons | { readonly clone: string };
  /** `ppo` on `llmserve`: traffic, trace and shift. */
  readonly scenario?: ServeScenario;
  /** A trace of one's own that the scenario names: the name of its shared bytes. */
  readonly trace?: string;
  /** `llmserve`: a task of one's own that `task` names: the name of its shared bytes. */
  readonly ownTask?: string;
  /** `inferencegym`: the shared bytes of a table of one's own. */
  readonly table?: string;
}

/** Of a job with lessons, as its progress tells: how long a teacher takes beside PPO is not known in advance. */
const LESSONS_SHARE = 0.5;

/** What came of it. */
export interface TrainPolicyOutput {
  readonly steps: number;
  readonly final_return: number | null;
  /** What `networkFiles` or `searchedFiles` names, in base64; the policy comes last. */
  readonly files: { readonly [kind: string]: string; readonly policy: string };
  /** The lines of the metrics, without times; none where the algorithm keeps none. */
  readonly metrics: readonly MetricsLine[];
}

/** The job `train-policy`: learns with one seed, on one thread, what `train` with that seed learns. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const asked = input as unknown as TrainPolicyInput;
  addSharedTask(asked.ownTask, context);
  const output = await learn(asked, context);
  return output as unknown as Json;
}

async function learn(asked: TrainPolicyInput, context: JobContext): Promise<TrainPolicyOutput> {
  const { algorithm } = asked;
  if (isNetworkAlgorithm(algorithm)) return learnNetwork(algorithm, asked, context);
  return algorithm === 'cem' ? learnRegimes(asked, context) : learnConstant(asked);
}

async function learnNetwork(
  algorithm: NetworkAlgorithm,
  asked: TrainPolicyInput,
  context: JobContext,
): Promise<TrainPolicyOutput> {
  const { steps, seed } = asked;
  const learningTask = await findLearningTask(asked, context);
  const { actor, share } = await findStart(asked, context);
  const metrics: MetricsLine[] = [];
  const trained = await trainPpo({
    ...{ ...learningTask, steps, seed, threads: 1, start: actor && { actor } },
    onUpdate(update) {
      metrics.push(learnedFigures(update));
      context.report(share + (1 - share) * Math.min(1, update.steps / steps));
    },
  });
  const { weights, checkpoint } = trained;
  return {
    steps: trained.steps,
    final_return: finalReturn(metrics),
    files: {
      onnx: base64(encodeOnnxActor(weights, learningTask.metadata)),
      checkpoint: base64(encodeRun({ learningTask, algorithm, steps, seed, checkpoint })),
      policy: base64(learningTask.encodeActor(weights, { algorithm, steps: trained.steps, seed })),
    },
    metrics,
  };
}

async function findLearningTask(
  { environment, task, algorithm, scenario = {}, trace, table }: TrainPolicyInput,
  context: JobContext,
): Promise<LearningTask> {
  if (algorithm === 'distill') return serveLearningTask(task, SERVE_FINE_TUNING);
  if (table !== undefined) {
    return LEARNING_TASKS[environment]!.find(task, await gymTable(context.shared(table)));
  }
  if (Object.keys(scenario).length === 0) return LEARNING_TASKS[environment]!.find(task);
  addSharedTrace(scenario, trace, context);
  return serveLearningTask(task, SERVE_PPO, scenario);
}

/** The network that PPO goes on from, where it does, and the share of the job that is done then. */
async function findStart(
  { task, seed, start }: TrainPolicyInput,
  context: JobContext,
): Promise<{ readonly actor?: ActorWeights; readonly share: number }> {
  if (start === undefined) return { share: 0 };
  if ('clone' in start) return { actor: decodeActor(context.shared(start.clone)).weights, share: 0 };
  const { teacher, ...lessons } = start;
  const actor = await distill({
    ...{ ...lessons, taskId: task, seed },
    demonstrate: async ({ taskId, traces, student }) =>
      traces.map((trace) => demonstrateWith(teacher, taskId, trace, student)),
    onRound: ({ round }) => context.report((LESSONS_SHARE * round) / DISTILLATION_ROUNDS),
  });
  return { actor, share: LESSONS_SHARE };
}

async function learnRegimes(
  { task, steps, seed }: TrainPolicyInput,
  context: JobContext,
): Promise<TrainPolicyOutput> {
  const metrics: MetricsLine[] = [];
  const table = await searchRegimes({
    ...{ taskId: task, steps, seed },
    play: async (trials: readonly RegimeTrial[]) => trials.map(playRegimes),
    onGeneration(generation) {
      metrics.push(generationFigures(generation));
      context.report(Math.min(1, generation.steps / steps));
    },
  });
  const policy = base64(Buffer.from(encodeRegimeTable(table)));
  return { steps: table.steps, final_return: finalReturn(metrics), files: { policy }, metrics };
}

async function learnConstant({ task, seed }: TrainPolicyInput): Promise<TrainPolicyOutput> {
  const { policy, ...report } = constantReport(task, seed, await tuneConstant({ taskId: task, seed }));
  return { ...report, files: { policy: base64(Buffer.from(policy)) }, metrics: [] };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
