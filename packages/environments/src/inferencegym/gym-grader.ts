import { EnvironmentError, type EpisodeRecord, type Grade } from '@servegym/openenv/definition';
import { portableMath } from '@servegym/simulator';
import { type ChangeMoments, GymEpisode, type GymTotals } from './gym-episode.ts';
import { chooseGymTask, type GymTask, readGymSeed } from './gym-tasks.ts';
import type { GymWorld, TaskCalibration } from './gym-world.ts';
import { EPISODE_STEPS, GYM_DEFAULT_ACTION, type GymAction } from './schema.ts';

/** Memory beyond the limit at which nothing is left of the memory part, GB. */
const MEMORY_SLOPE_GB = 10;
/** Consequence of going over a task's memory limit, for people. */
export const MEMORY_LIMIT_EFFECT = `It costs score, not service: the score's memory part falls to 0 at ${MEMORY_SLOPE_GB} GB over, by the highest use of the episode.`;
/** Mean time to first token of a step that was not played, ms. */
const UNPLAYED_TTFT_MS = 5000;
/** Variance of the actions at which nothing is left of the stability part. */
const MOST_VARIANCE = 0.5;
const LARGEST_BATCH = 512;
/** Scores within this of 0 and 1 are bent so that they never get there. */
const MARGIN = 0.05;

/**
 * Grades an episode by replaying its actions on the traffic of its task and seed, and beside it the default
 * configuration. Steps that were not played served nobody, and each takes back two that were. Memory and cost below those
 * of the default count only for who serves as many requests as the default and violates no more objectives.
 * @throws EnvironmentError `EPISODE_TOO_LONG`, and what a reset throws
 */
export function gradeGymEpisode(world: GymWorld, record: EpisodeRecord<GymAction>): Grade {
  const task = chooseGymTask(record.reset);
  const seed = readGymSeed(record.reset);
  const { actions } = record;
  if (actions.length > EPISODE_STEPS) {
    throw new EnvironmentError(
      'EPISODE_TOO_LONG',
      `Expected at most ${EPISODE_STEPS} actions, got ${actions.length}`,
    );
  }
  const episode = new GymEpisode(task, seed, world);
  for (const action of actions) episode.step(action);
  const standard = new GymEpisode(task, seed, world);
  while (!standard.done) standard.step(GYM_DEFAULT_ACTION);
  return gradeTotals(task, episode.totals, actions.length, standard.totals, world.calibration(task));
}

/** The grade of an episode with these sums, beside those of the default configuration on the same traffic. */
function gradeTotals(
  task: GymTask,
  totals: Readonly<GymTotals>,
  played: number,
  standardTotals: Readonly<GymTotals>,
  calibration: TaskCalibration,
): Grade {
  const unplayed = EPISODE_STEPS - played;
  const means = meansOf(totals, played);
  const standard = meansOf(standardTotals, EPISODE_STEPS);
  const servesWorse =
    means.served_share < standard.served_share || means.slo_violation_rate > standard.slo_violation_rate;
  const mostSaved = servesWorse ? savings(task, standardTotals) : WHATEVER_IS_SAVED;
  const parts = partsOf(task, totals, means, mostSaved, calibration);
  const raw = parts.reduce((sum, { weight, value }) => sum + weight * value, 0);
  // Each step that was not played also takes back two that were: stopping early never pays.
  const completeness = Math.max(0, 1 - (3 * unplayed) / EPISODE_STEPS);
  return {
    score: insideUnitInterval(Math.min(raw, raw * completeness)),
    breakdown: {
      ...Object.fromEntries(parts.map(({ name, value }) => [name, value])),
      weights: Object.fromEntries(parts.map(({ name, weight }) => [name, weight])),
      return: totals.reward,
      mean_tokens_per_sec: means.tokens_per_sec,
      baseline_tokens_per_sec: calibration.referenceTokensPerSecond,
      optimal_tokens_per_sec: calibration.bestTokensPerSecond,
      mean_ttft_p50_ms: means.ttft_p50_ms,
      mean_slo_violation_rate: means.slo_violation_rate,
      served_share: means.served_share,
      default_served_share: standard.served_share,
      default_slo_violation_rate: standard.slo_violation_rate,
      peak_memory_gb: totals.peakMemoryGb,
      out_of_memory_events: totals.oomEvents,
      cost_cents: totals.cost,
      action_variance: actionVariance(totals),
      steps_played: played,
      steps: EPISODE_STEPS,
    },
    feedback: feedback(parts, totals, unplayed, servesWorse),
  };
}

function meansOf(totals: Readonly<GymTotals>, played: number) {
  const unplayed = EPISODE_STEPS - played;
  return {
    tokens_per_sec: totals.outputTokens / EPISODE_STEPS,
    ttft_p50_ms: (totals.ttftMs + unplayed * UNPLAYED_TTFT_MS) / EPISODE_STEPS,
    slo_violation_rate: (totals.violationRate + unplayed) / EPISODE_STEPS,
    /** Of the requests that arrived; those of steps that were not played are not served. */
    served_share: totals.arrived === 0 ? 0 : (totals.served / totals.arrived) * (played / EPISODE_STEPS),
  };
}

const WHATEVER_IS_SAVED = { memory: 1, cost: 1 };

/**
 * Memory and money that are not used: memory is 1 up to the task's limit and 0 from 10 GB above it, cost the share of the
 * task's budget that is left, 1 without a budget.
 */
function savings(
  { memoryLimitGb, costBudget }: GymTask,
  { peakMemoryGb, cost }: Readonly<GymTotals>,
): typeof WHATEVER_IS_SAVED {
  return {
    memory: memoryLimitGb === null ? 1 : held(1 - (peakMemoryGb - memoryLimitGb) / MEMORY_SLOPE_GB),
    cost: costBudget === null ? 1 : Math.max(0, 1 - cost / costBudget),
  };
}

/** The parts of a score: their weights, their values in [0, 1] and what to do when they are low. */
function partsOf(
  task: GymTask,
  totals: Readonly<GymTotals>,
  means: ReturnType<typeof meansOf>,
  mostSaved: typeof WHATEVER_IS_SAVED,
  { bestTokensPerSecond: best, referenceTokensPerSecond: reference }: TaskCalibration,
) {
  const saved = savings(task, totals);
  const memory = Math.min(saved.memory, mostSaved.memory);
  const cost = Math.min(saved.cost * saved.memory, mostSaved.cost * mostSaved.memory);
  const part = (name: string, weight: number, value: number, advice: string) => ({
    name,
    weight,
    value,
    advice,
  });
  switch (task.id) {
    case 1: {
      // Not held at 0 and 1 here: the score still tells worse from bad, and better from good.
      const value = (means.tokens_per_sec - reference) / (best - reference);
      return [
        part('throughput', 1, value, 'let more requests run at once, with as much KV memory as they need'),
      ];
    }
    case 2: {
      const ttft = Math.max(0, 1 - means.ttft_p50_ms / task.sloMs[0]);
      const below = `stay below ${task.memoryLimitGb} GB while everybody is served`;
      return [
        part('ttft', 0.5, ttft, 'requests wait: a larger batch, or speculation while few run'),
        part('memory', 0.5, memory * means.served_share, below),
      ];
    }
    case 3: {
      const faster = 'long prompts take the time: INT8, or prefill on a GPU of its own';
      const inTime = held(1 - means.slo_violation_rate);
      const cheaper = `give KV memory back: the budget is ${task.costBudget} cents and ${task.memoryLimitGb} GB`;
      const steady = (1 - actionVariance(totals)) * means.served_share;
      return [
        part('throughput', 0.4, held(means.tokens_per_sec / best), faster),
        part('slo', 0.3, inTime, 'requests wait longer than their class allows'),
        part('cost', 0.2, cost * means.served_share, cheaper),
        part('stability', 0.1, steady, 'change batch and KV budget less from step to step'),
      ];
    }
  }
}

/** Deviation between neighbouring actions, 0 to 1. */
function actionVariance({ batchChange, kvChange }: Readonly<GymTotals>): number {
  return Math.min(1, (deviation(batchChange) / LARGEST_BATCH + deviation(kvChange)) / MOST_VARIANCE);
}

function deviation({ count, sum, squares }: ChangeMoments): number {
  if (count === 0) return 0;
  const mean = sum / count;
  return Math.sqrt(Math.max(0, squares / count - mean * mean));
}

function held(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** Increasing; the value itself except near 0 and 1, which are approached and never reached. */
function insideUnitInterval(value: number): number {
  if (value > 1 - MARGIN) return 1 - insideUnitInterval(1 - value);
  if (value >= MARGIN) return value;
  return Math.max(Number.MIN_VALUE, MARGIN * portableMath.exp(value / MARGIN - 1));
}

function feedback(
  parts: ReturnType<typeof partsOf>,
  totals: Readonly<GymTotals>,
  unplayed: number,
  servesWorse: boolean,
): string {
  if (unplayed === EPISODE_STEPS) return 'The log has no actions: nobody was served. Play the episode.';
  if (unplayed > 0) {
    return `${unplayed} of ${EPISODE_STEPS} steps were not played and count as steps that serve nobody. Play to the end.`;
  }
  if (totals.oomEvents > 0) {
    const times = totals.oomEvents === 1 ? 'once' : `${totals.oomEvents} times`;
    return `The server ran out of memory ${times} and lost its batch and ${totals.outageSteps} steps of service. Take a smaller KV budget beside a large batch or speculation.`;
  }
  if (servesWorse) {
    return 'Fewer requests are served than with the default configuration, or more violate their objectives: nothing that is saved makes up for it. Serve more first: a larger batch.';
  }
  const [worst] = [...parts].sort((a, b) => b.weight * (1 - b.value) - a.weight * (1 - a.value));
  const lost = worst.weight * (1 - worst.value);
  const told = parts.map(({ name, value }) => `${name} ${held(value).toFixed(2)}`).join(', ');
  if (lost < MARGIN) return `Close to the best: ${told}.`;
  return `${told[0].toUpperCase()}${told.slice(1)}. Most is lost in ${worst.name}: ${worst.advice}.`;
}
