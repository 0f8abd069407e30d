import { decodeActor } from '@servegym/agents';
import type { JobContext, Json } from '@servegym/jobs';
import { addSharedTask } from '../jobs/job-task.ts';
import { demonstrateWith } from './demonstrate-with.ts';

/** An episode to be demonstrated. */
export interface DemonstrationInput {
  readonly taskId: string;
  readonly trace: number;
  /** A policy of the catalogue. */
  readonly teacher: string;
  /** Shared bytes of the actor that plays; `null` where the teacher does. */
  readonly student: string | null;
  /** A task of one's own that `taskId` names: the name of its shared bytes. */
  readonly ownTask?: string;
}

/** What `DemonstratedEpisode` has, as JSON. */
export interface DemonstrationOutput {
  readonly observations: readonly number[];
  readonly binsInForce: readonly number[];
  readonly actions: readonly number[];
  readonly return: number;
}

/** Plays an episode, and puts down what a teacher would do. */
export function runJob(input: Json, context: JobContext): Json {
  const { taskId, trace, teacher, student, ownTask } = input as unknown as DemonstrationInput;
  addSharedTask(ownTask, context);
  const actor = student === null ? undefined : decodeActor(context.shared(student)).weights;
  const shown = demonstrateWith(teacher, taskId, trace, actor);
  const output: DemonstrationOutput = {
    observations: [...shown.observations],
    binsInForce: [...shown.binsInForce],
    actions: [...shown.actions],
    return: shown.return,
  };
  return output as unknown as Json;
}
