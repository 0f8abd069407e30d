import { type Evaluation, type GainFigures, gainFigures, type ShippedName } from '@servegym/agents';
import { firstSeeds, llmserve, type TaskId } from '@servegym/environments';
import { interquartileMean, mean, nestedBootstrap } from '@servegym/simulator/statistics';
import {
  type BenchmarkPlan,
  type BenchmarkSplit,
  isLearned,
  plannedEpisodes,
  plannedSplits,
} from './benchmark-plan.ts';
import { type BenchmarkContext, learnAll } from './learn-all.ts';
import { type Player, scorePolicies } from './score-policies.ts';

/** Result of an agent on a task. */
export interface BenchmarkCell {
  readonly agent: string;
  readonly taskId: TaskId;
  readonly split: BenchmarkSplit;
  readonly score: Evaluation['overall'];
  /** Of the returns of all runs. Missing in results of versions before it was measured. */
  readonly gains?: GainFigures | null;
  readonly episodes: number;
  /** Mean score of each training run; of the one policy where nothing is trained. */
  readonly runs: readonly number[];
  /** Of the first traces, by the first run: what a later check compares with. */
  readonly firstScores: readonly number[];
}

/** All that was measured. */
export interface AgentBenchmark {
  readonly environment: string;
  readonly version: string;
  readonly plan: BenchmarkPlan;
  /** Difference between these scores and those that the grader gives now. A run that measures anew has none. */
  readonly note?: string;
  readonly cells: readonly BenchmarkCell[];
}

/** Scores that a later check compares with. */
const FIRST_SCORES = 3;
/** Traces of the validation split that the shipped policy is chosen by. */
const VALIDATION_EPISODES = 30;

/** Trains what is learned, and plays all agents on the same held-out traces. */
export async function benchmarkAgents(
  plan: BenchmarkPlan,
  context: BenchmarkContext,
): Promise<AgentBenchmark> {
  const contenders: { agent: string; taskId: TaskId; players: readonly Player[] }[] = [];
  for (const agent of plan.agents) {
    for (const taskId of plan.taskIds) {
      const players = isLearned(agent) ? await learnAll(plan, agent, taskId, context) : [agent];
      contenders.push({ agent, taskId, players });
    }
  }
  const cells: BenchmarkCell[] = [];
  for (const split of plannedSplits(plan)) {
    for (const { agent, taskId, players } of contenders) {
      const seeds = firstSeeds('test', plannedEpisodes(plan, agent, split));
      if (seeds.length === 0) continue;
      const shift = split === 'test' ? null : split;
      const played = await scorePolicies(players, { taskId, shift, seeds }, context);
      const runs = played.map((episodes) => episodes.map((episode) => episode.score));
      const score = {
        mean: mean(runs.flat()),
        iqm: interquartileMean(runs.flat()),
        ci95: nestedBootstrap(runs, interquartileMean),
      };
      context.say(`${split}: ${agent} on ${taskId} ${score.iqm.toFixed(3)}`);
      cells.push({
        ...{ agent, taskId, split, score, gains: gainFigures([played.flat()]), episodes: seeds.length },
        runs: runs.map(mean),
        firstScores: runs[0].slice(0, FIRST_SCORES),
      });
    }
  }
  return { environment: llmserve.id, version: llmserve.version, plan, cells };
}

/** Of the training runs of an agent, the file of the one with the highest mean return on the validation split. */
export async function bestOnValidation(
  plan: BenchmarkPlan,
  agent: ShippedName,
  taskId: TaskId,
  context: BenchmarkContext,
): Promise<Uint8Array> {
  const learned = await learnAll(plan, agent, taskId, context);
  const seeds = firstSeeds('validation', VALIDATION_EPISODES);
  const runs = await scorePolicies(learned, { taskId, shift: null, seeds }, context);
  const means = runs.map((episodes) => mean(episodes.map((episode) => episode.return)));
  const best = means.indexOf(Math.max(...means));
  const gain = gainFigures([runs[best]])?.gain.mean.toFixed(3) ?? 'none';
  context.say(`${agent} on ${taskId}: run ${best} has gain ${gain} on the validation split`);
  return learned[best].file;
}
