import { chooseTask, type EpisodeAnchors, episodeAnchors, generateWorkload } from '@servegym/environments';
import type { Traffic } from './policy-returns.ts';

/** What the grader holds returns against, in the order of the seeds. */
export function trafficAnchors({ taskId, shift, seeds }: Traffic): EpisodeAnchors[] {
  const task = chooseTask({ task_id: taskId, ...(shift !== null && { shift }) });
  return seeds.map((seed) => episodeAnchors(task, seed, generateWorkload(task, seed)));
}
