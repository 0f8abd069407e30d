import type { ServeAction } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import type { ServeTask } from '../tasks/serve-task.ts';
import type { Workload } from '../workload/workload.ts';

/** Return of an episode in which the configuration never changes. */
export function constantReturn(
  task: ServeTask,
  seed: number,
  workload: Workload,
  action: ServeAction,
): number {
  const episode = new ServeEpisode(task, seed, { workload });
  while (!episode.done) episode.step(action);
  return episode.totals.reward;
}
