import { encodeOnnxActor, type LearningTask, SERVE_PPO, serveLearningTask, trainPpo } from '@servegym/agents';
import type { JobContext, Json } from '@servegym/agents/jobs';
import type { ServeScenario, TaskId } from '@servegym/environments';
import { addSharedTrace } from '../jobs/job-trace.ts';
import { gymTable } from '../read-table.ts';
import type { MetricsLine } from '../reports/learning-curve.ts';
import { learnedFigures } from '../reports/training-report.ts';
import { encodeRun } from './checkpoint-file.ts';
import { LEARNING_TASKS } from './learning-tasks.ts';

/** A network to be trained with PPO on a thread or another machine. */
export interface TrainNetworkInput {
  readonly environment: string;
  readonly task: string;
  /** Windows to learn from. */
  readonly steps: number;
  readonly seed: number;
  /** `llmserve`: traffic, trace and shift. */
  readonly scenario: ServeScenario;
  /** A trace of one's own that the scenario names: the name of its shared bytes. */
  readonly trace?: string;
  /** `inferencegym`: the shared bytes of a table of one's own. */
  readonly table?: string;
}

/** What came of it: the files that `train` writes, in base64, and the lines of its metrics without times. */
export interface TrainNetworkOutput {
  readonly steps: number;
  readonly policy: string;
  readonly onnx: string;
  readonly checkpoint: string;
  readonly metrics: readonly MetricsLine[];
}

/** The job `train-network`: trains a network with one seed, on one thread. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const asked = input as unknown as TrainNetworkInput;
  const learningTask = await findLearningTask(asked, context);
  const { steps, seed } = asked;
  const metrics: MetricsLine[] = [];
  const trained = await trainPpo({
    ...{ ...learningTask, steps, seed, threads: 1 },
    onUpdate(update) {
      metrics.push(learnedFigures(update));
      context.report(Math.min(1, update.steps / steps));
    },
  });
  const { weights, checkpoint } = trained;
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
  const output: TrainNetworkOutput = {
    steps: trained.steps,
    policy: base64(learningTask.encodeActor(weights, { algorithm: 'ppo', steps: trained.steps, seed })),
    onnx: base64(encodeOnnxActor(weights, learningTask.metadata)),
    checkpoint: base64(encodeRun({ learningTask, algorithm: 'ppo', steps, seed, checkpoint })),
    metrics,
  };
  return output as unknown as Json;
}

async function findLearningTask(
  { environment, task, scenario, trace, table }: TrainNetworkInput,
  context: JobContext,
): Promise<LearningTask> {
  if (table !== undefined) {
    return LEARNING_TASKS[environment]!.find(task, await gymTable(context.shared(table)));
  }
  if (Object.keys(scenario).length === 0) return LEARNING_TASKS[environment]!.find(task);
  addSharedTrace(scenario, trace, context);
  return serveLearningTask(task as TaskId, SERVE_PPO, scenario);
}
