import { llmserve, type Shift, type TaskId } from '@servegym/environments';
import type { Json } from '@servegym/jobs';

/** Episodes of a task of ours, by the seeds of their traffic. */
export interface SeededTraffic {
  readonly taskId: TaskId;
  /** `null` for the traffic and the server as they are. */
  readonly shift: Shift | null;
  readonly seeds: readonly number[];
}

/** The job `traffic-anchors`: answers the `EpisodeAnchors` that returns are held against, in the order of the seeds. */
export function runJob(input: Json): Json {
  const { taskId, shift, seeds } = input as unknown as SeededTraffic;
  const task = llmserve.choose({ task_id: taskId, ...(shift !== null && { shift }) });
  return seeds.map((seed) =>
    llmserve.anchors.of(task, seed, llmserve.drawRequests(task, seed)),
  ) as unknown as Json;
}
