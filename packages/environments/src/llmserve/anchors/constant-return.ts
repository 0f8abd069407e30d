import type { EpisodeRequests } from '../requests/episode-requests.ts';
import type { ServeAction } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import type { ServeTask } from '../tasks/serve-task.ts';

/** Return of an episode in which the configuration never changes. */
export function constantReturn(
  task: ServeTask,
  seed: number,
  requests: EpisodeRequests,
  action: ServeAction,
): number {
  const episode = new ServeEpisode(task, seed, { requests });
  while (!episode.done) episode.step(action);
  return episode.totals.reward;
}
