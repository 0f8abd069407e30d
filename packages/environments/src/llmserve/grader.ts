import type { EpisodeRecord, Grade } from '@servegym/openenv/definition';
import { gradeWindows } from '../grading.ts';
import { episodeAnchors, serveReturns } from './anchors/serve-anchors.ts';
import { drawRequests } from './episode-requests.ts';
import { chooseTask } from './scenario.ts';
import type { ServeAction } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';

/** Grades an episode; see `gradeWindows`. The default configuration scores 0.20, the best constant one 0.50. */
export function gradeEpisode(record: EpisodeRecord<ServeAction>): Grade {
  return gradeWindows(record, {
    choose: chooseTask,
    drawRequests,
    start: (task, seed, requests) => new ServeEpisode(task, seed, { requests }),
    unplayedReward: () => -1,
    anchors: episodeAnchors,
    tuned: ({ constant }) => constant,
    shown: ['default', 'constant', 'planner', 'clairvoyant'],
    room: (taskId) => serveReturns.room(taskId),
    figures: (episode) => ({
      requests_served: episode.totals.requestsServed,
      requests_rejected: episode.totals.requestsRejected,
      slo_violations: episode.sloViolations(),
      preemptions: episode.totals.preemptions,
      cost_usd: episode.totals.cost,
    }),
    words: {
      default: 'the default configuration',
      tuned: 'the best configuration that never changes',
      requests: 'this traffic',
      known: 'the traffic',
      unplayed: '-1 each',
      amount: (_, difference) => difference.toFixed(1),
    },
  });
}
