import { EnvironmentError, type EpisodeRecord, type Grade } from '@servegym/openenv/definition';
import { findProfile, kvBlocksGiB, kvMemoryGiB, kvPoolBlocks } from '@servegym/simulator';
import { chooseTask, readSeed } from './reset-options.ts';
import type { ServeAction } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { generateWorkload } from './workload/workload.ts';

/** Score of the task's default configuration. */
const DEFAULT_SCORE = 0.2;
/** Score of a policy that reaches the bound. */
const BOUND_SCORE = 0.95;
/** A default that is as good as the bound leaves nothing to reach: a window's reward is then measured by this. */
const LEAST_REACH = 0.01;
/** What a window that was not played counts: the least that a window can be worth. */
const UNPLAYED_REWARD = -1;

/**
 * Grades an episode by replaying its actions on the traffic of its task and seed. The score is 0.20 where the return is
 * that of the default configuration on the same traffic and 0.95 at a bound that no policy can exceed, linear between,
 * and falls smoothly towards 0 below the default. A window that was not played counts -1, the least there is.
 * @throws EnvironmentError `EPISODE_TOO_LONG` when there are more actions than windows
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
  const workload = generateWorkload(task, seed);
  const episode = new ServeEpisode(task, seed, { workload });
  for (const action of record.actions) episode.step(action);
  const unplayed = task.windows - record.actions.length;
  const total = episode.totals.reward + unplayed * UNPLAYED_REWARD;

  const reference = new ServeEpisode(task, seed, { workload });
  while (!reference.done) reference.step(task.defaultAction);
  const defaultReturn = reference.totals.reward;
  const bound = task.windows * bestReward(task);
  const reach = Math.max(bound - defaultReturn, LEAST_REACH * task.windows);
  const gain = (total - defaultReturn) / reach;
  const { requestsServed, requestsRejected, sloViolations, preemptions, cost } = episode.totals;
  return {
    score: scoreOf(gain),
    breakdown: {
      return: total,
      anchors: { default: defaultReturn, bound },
      regret: bound - total,
      windows_played: record.actions.length,
      windows: task.windows,
      requests_served: requestsServed,
      requests_rejected: requestsRejected,
      slo_violations: sloViolations,
      preemptions,
      cost_usd: cost,
    },
    feedback: feedback(task, gain, unplayed),
  };
}

/** Strictly inside (0, 1) however large a loss, increasing, and smooth at the default. */
function scoreOf(gain: number): number {
  const slope = BOUND_SCORE - DEFAULT_SCORE;
  return gain >= 0 ? DEFAULT_SCORE + slope * gain : DEFAULT_SCORE / (1 - (slope / DEFAULT_SCORE) * gain);
}

/** No window can be worth more: everything served inside its objectives, at no cost, on the smallest pool. */
function bestReward(task: ServeTask): number {
  const profile = findProfile(task.profile);
  const smallest =
    kvBlocksGiB(profile, kvPoolBlocks(profile, 'FP16', true, 0.1)) / kvMemoryGiB(profile, 'FP16', false);
  return task.reward.throughput + task.reward.slo - task.reward.memory * smallest;
}

function feedback(task: ServeTask, gain: number, unplayed: number): string {
  if (unplayed > 0) {
    return `${unplayed} of ${task.windows} windows were not played and count -1 each. Play to the end.`;
  }
  const share = `${Math.abs(gain * 100).toFixed(1)} %`;
  if (gain < 0)
    return `Worse than the default configuration on this traffic, by ${share} of the way to the bound.`;
  return `Better than the default configuration on this traffic, by ${share} of the way to the bound.`;
}
