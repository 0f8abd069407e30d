import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { type ActorWeights, decodeActor, encodeActor } from '../../learning/trained-actor.ts';
import { createPolicy } from '../policies/catalogue.ts';
import { PpoPolicy } from '../policies/ppo-policy.ts';
import { addSharedTask, shareTask } from '../shared-inputs.ts';
import { type DemonstratedEpisode, demonstrate } from './demonstrate.ts';
import type { DemonstrationRequest } from './distill.ts';

/** An episode to be demonstrated. */
interface DemonstrationInput {
  readonly taskId: string;
  readonly trace: number;
  /** A policy of the catalogue. */
  readonly teacher: string;
  /** Shared bytes of the actor that plays; `null` where the teacher does. */
  readonly student: string | null;
  /** A task of one's own that `taskId` names: the name of its shared bytes. */
  readonly ownTask?: string;
}

/** A `DemonstratedEpisode` as JSON. */
interface DemonstrationOutput {
  readonly observations: readonly number[];
  readonly binsInForce: readonly number[];
  readonly actions: readonly number[];
  readonly return: number;
}

/** The job `demonstrate`: plays an episode, and puts down what a teacher would do. */
export function runJob(input: Json, context: JobContext): Json {
  const { taskId, trace, teacher, student, ownTask } = input as unknown as DemonstrationInput;
  addSharedTask(ownTask, context);
  const weights = student === null ? undefined : decodeActor(context.shared(student)).weights;
  const shown = demonstrateWith(teacher, taskId, trace, weights);
  const output: DemonstrationOutput = {
    observations: [...shown.observations],
    binsInForce: [...shown.binsInForce],
    actions: [...shown.actions],
    return: shown.return,
  };
  return output as unknown as Json;
}

/** Episodes as a teacher of the catalogue demonstrates them: an episode a job, or all on this thread without `jobs`. */
export async function haveDemonstrated(
  jobs: JobEngine | undefined,
  teacher: string,
  { taskId, traces, student }: DemonstrationRequest,
): Promise<readonly DemonstratedEpisode[]> {
  if (jobs === undefined) return traces.map((trace) => demonstrateWith(teacher, taskId, trace, student));
  const name = student === undefined ? null : await jobs.share(encodeActor(student, {}));
  const ownTask = await shareTask(jobs, taskId);
  const shared = [name, ownTask].filter((each) => typeof each === 'string');
  const outputs = await jobs.run(
    traces.map((trace) => {
      const input: DemonstrationInput = {
        ...{ taskId, trace, teacher, student: name },
        ...(ownTask !== undefined && { ownTask }),
      };
      return { kind: 'demonstrate', input: input as unknown as Json, shared };
    }),
  );
  return (outputs as unknown as DemonstrationOutput[]).map((output) => ({
    observations: Float32Array.from(output.observations),
    binsInForce: Int32Array.from(output.binsInForce),
    actions: Int32Array.from(output.actions),
    return: output.return,
  }));
}

function demonstrateWith(
  teacher: string,
  taskId: string,
  trace: number,
  student?: ActorWeights,
): DemonstratedEpisode {
  const player = student && new PpoPolicy({ taskId, weights: student, training: {} });
  return demonstrate(taskId, trace, createPolicy(teacher), player);
}
