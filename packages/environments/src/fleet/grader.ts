import type { EpisodeRecord, Grade } from '@servegym/openenv/definition';
import { gradeWindows } from '../grading.ts';
import { fleetAnchors, fleetReturns } from './anchors/fleet-anchors.ts';
import { drawFleetRequests } from './draw-requests.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { chooseFleetTask } from './scenario.ts';
import type { FleetAction } from './schema.ts';

/** Grades an episode; see `gradeWindows`. The HorizontalPodAutoscaler scores 0.20, the best tuned rule 0.50. */
export function gradeFleetEpisode(record: EpisodeRecord<FleetAction>): Grade {
  return gradeWindows(record, {
    choose: chooseFleetTask,
    drawRequests: drawFleetRequests,
    start: (task, seed, requests) => new FleetEpisode(task, seed, requests),
    unplayedReward: (episode) => -fullBill(episode),
    anchors: fleetAnchors,
    tuned: ({ rule }) => rule,
    shown: ['default', 'rule', 'clairvoyant'],
    room: (taskId) => fleetReturns.room(taskId),
    figures: ({ totals }) => ({
      requests: totals.requests,
      completed: totals.completed,
      slo_attainment: totals.requests === 0 ? 1 : totals.attained / totals.requests,
      refused: totals.refused,
      revenue_usd: totals.revenueUsd,
      gpu_usd: totals.gpuUsd,
      gpu_hours: totals.gpuHours,
    }),
    words: {
      default: 'the HorizontalPodAutoscaler',
      tuned: 'the tuned rule',
      requests: 'these requests',
      known: 'them',
      unplayed: 'as all GPUs billed for nothing',
      amount: ({ referenceUsd }, difference) => `USD ${(difference * referenceUsd).toFixed(2)}`,
    },
  });
}

/** Bill of a window in which all GPUs are in use and nobody is served, in rewards. */
function fullBill({ task, profiles }: FleetEpisode): number {
  const usdPerHour = Math.max(...profiles.map(({ gpu }) => gpu.count * gpu.usdPerHour));
  return (task.maxReplicas * usdPerHour * task.windowSeconds) / 3600 / task.referenceUsd;
}
