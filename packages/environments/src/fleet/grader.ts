import { EnvironmentError, type EpisodeRecord, type Grade } from '@servegym/openenv/definition';
import { requireMaskedKnobsHeld } from '../masked-knobs.ts';
import { anchorScores, regretScore } from '../regret-score.ts';
import { readSeed } from '../reset-values.ts';
import { type FleetAnchors, fleetAnchors, fleetRoom } from './anchors/fleet-anchors.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { drawFleetRequests } from './requests/draw-requests.ts';
import { chooseFleetTask } from './reset-options.ts';
import type { FleetAction } from './schema.ts';
import type { FleetTask } from './tasks/fleet-task.ts';

/**
 * Grades an episode by replaying its actions on the requests of its task and seed and holding its return against those of
 * the HorizontalPodAutoscaler, the best tuned rule and a planner that knows the requests; see `regretScore`. A window that
 * was not played counts as one in which all GPUs are billed and nobody is served: the least there is.
 * @throws EnvironmentError `EPISODE_TOO_LONG` when there are more actions than windows, `MASKED_KNOB` when one of them
 *   turns a knob that the task masks
 */
export function gradeFleetEpisode({ reset, actions }: EpisodeRecord<FleetAction>): Grade {
  const task = chooseFleetTask(reset);
  const seed = readSeed(reset);
  if (actions.length > task.windows) {
    throw new EnvironmentError(
      'EPISODE_TOO_LONG',
      `Expected at most ${task.windows} actions for \`${task.id}\`, got ${actions.length}`,
    );
  }
  const requests = drawFleetRequests(task, seed);
  const episode = new FleetEpisode(task, seed, requests);
  for (const action of actions) episode.step(requireMaskedKnobsHeld(task, action));
  const { totals } = episode;
  const unplayed = task.windows - actions.length;
  const total = totals.reward - unplayed * fullBill(episode);

  const anchors = fleetAnchors(task, seed, requests);
  const { default: standard, rule, clairvoyant } = anchors;
  const ofScore = { default: standard, constant: rule, clairvoyant };
  const room = fleetRoom(task.id);
  const score = regretScore(total, ofScore, room);
  return {
    score,
    ...(anchors.estimated && { estimated: true }),
    breakdown: {
      return: total,
      anchors,
      anchor_scores: anchorScores({ default: standard, rule, clairvoyant }, ofScore, room),
      regret: clairvoyant - total,
      certificate: { bound: anchors.bound, gap: anchors.bound - clairvoyant },
      windows_played: actions.length,
      windows: task.windows,
      requests: totals.requests,
      completed: totals.completed,
      slo_attainment: totals.requests === 0 ? 1 : totals.attained / totals.requests,
      refused: totals.refused,
      revenue_usd: totals.revenueUsd,
      gpu_usd: totals.gpuUsd,
      gpu_hours: totals.gpuHours,
    },
    feedback: feedback(task, total, anchors, unplayed),
  };
}

/** Bill of a window in which all GPUs are in use, in rewards. */
function fullBill({ task, profiles }: FleetEpisode): number {
  const usdPerHour = Math.max(...profiles.map(({ gpu }) => gpu.count * gpu.usdPerHour));
  return (task.maxReplicas * usdPerHour * task.windowSeconds) / 3600 / task.referenceUsd;
}

function feedback(task: FleetTask, total: number, anchors: FleetAnchors, unplayed: number): string {
  if (unplayed > 0) {
    return `${unplayed} of ${task.windows} windows were not played and count as all GPUs billed for nothing. Play to the end.`;
  }
  const { default: standard, rule, clairvoyant } = anchors;
  const usd = (reward: number) => `USD ${(reward * task.referenceUsd).toFixed(2)}`;
  const gain = total - standard;
  if (gain === 0) return 'As good as the HorizontalPodAutoscaler on these requests.';
  if (gain < 0) return `Worse than the HorizontalPodAutoscaler on these requests, by ${usd(-gain)}.`;
  const share = `${((gain / (clairvoyant - standard)) * 100).toFixed(0)} %`;
  const beyond = total > rule ? 'More' : 'Not more';
  return `Better than the HorizontalPodAutoscaler on these requests, by ${usd(gain)}: ${share} of what a planner gains that knows them. ${beyond} than the tuned rule.`;
}
