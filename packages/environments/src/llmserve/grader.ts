import { EnvironmentError, type EpisodeRecord, type Grade } from '@servegym/openenv/definition';
import { requireMaskedKnobsHeld } from '../masked-knobs.ts';
import { anchorScores, regretScore } from '../regret-score.ts';
import { readSeed } from '../reset-values.ts';
import { type EpisodeAnchors, episodeAnchors, roomToAdapt } from './anchors/episode-anchors.ts';
import { drawRequests } from './requests/episode-requests.ts';
import { chooseTask } from './reset-options.ts';
import type { ServeAction } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';

/** Reward of a window that was not played: the least that a window can have. */
const UNPLAYED_REWARD = -1;

/**
 * Grades an episode by replaying its actions on the traffic of its task and seed and holding its return against those of
 * the default configuration, the best constant one and a planner that knows the traffic; see `regretScore`. A window
 * that was not played counts -1, the least there is.
 * @throws EnvironmentError `EPISODE_TOO_LONG` when there are more actions than windows, `MASKED_KNOB` when one of them
 *   turns a knob that the task masks
 */
export function gradeEpisode(record: EpisodeRecord<ServeAction>): Grade {
  const task = chooseTask(record.reset);
  const seed = readSeed(record.reset);
  if (record.actions.length > task.windows) {
    throw new EnvironmentError(
      'EPISODE_TOO_LONG',
      `Expected at most ${task.windows} actions for \`${task.id}\`, got ${record.actions.length}`,
    );
  }
  const actions = record.actions.map((action) => requireMaskedKnobsHeld(task, action));
  const requests = drawRequests(task, seed);
  const episode = new ServeEpisode(task, seed, { requests });
  for (const action of actions) episode.step(action);
  const unplayed = task.windows - record.actions.length;
  const total = episode.totals.reward + unplayed * UNPLAYED_REWARD;

  const anchors = episodeAnchors(task, seed, requests);
  const room = roomToAdapt(task.id);
  const score = regretScore(total, anchors, room);
  const { default: standard, constant, planner, clairvoyant } = anchors;
  const { requestsServed, requestsRejected, preemptions, cost } = episode.totals;
  return {
    score,
    ...(anchors.estimated && { estimated: true }),
    breakdown: {
      return: total,
      anchors,
      anchor_scores: anchorScores({ default: standard, constant, planner, clairvoyant }, anchors, room),
      regret: clairvoyant - total,
      certificate: { bound: anchors.bound, gap: anchors.bound - clairvoyant },
      windows_played: record.actions.length,
      windows: task.windows,
      requests_served: requestsServed,
      requests_rejected: requestsRejected,
      slo_violations: episode.sloViolations(),
      preemptions,
      cost_usd: cost,
    },
    feedback: feedback(total, anchors, unplayed, task.windows),
  };
}

function feedback(total: number, anchors: EpisodeAnchors, unplayed: number, windows: number): string {
  if (unplayed > 0) {
    return `${unplayed} of ${windows} windows were not played and count -1 each. Play to the end.`;
  }
  const { default: standard, constant, clairvoyant } = anchors;
  const gain = total - standard;
  if (gain === 0) return 'As good as the default configuration on this traffic.';
  if (gain < 0) return `Worse than the default configuration on this traffic, by ${(-gain).toFixed(1)}.`;
  const share = `${((gain / (clairvoyant - standard)) * 100).toFixed(0)} %`;
  const than = `Better than the default configuration on this traffic, by ${gain.toFixed(1)}: ${share} of what a planner gains that knows the traffic.`;
  if (constant === null || constant <= standard) return than;
  const beyond = total > constant ? 'More' : 'Not more';
  return `${than} ${beyond} than the best configuration that never changes.`;
}
