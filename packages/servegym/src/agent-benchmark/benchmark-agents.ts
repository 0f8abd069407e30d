import { type Estimate, interquartileMean, SHIPPED_FORMATS, type ShippedName } from '@servegym/agents';
import type { Job, JobEngine, Json } from '@servegym/agents/jobs';
import { llmserve, SEED_SPLITS, SHIFTS, type Shift, type TaskId } from '@servegym/environments';
import type { LearningBudget, LearningRun } from './learn-policy.ts';
import { nestedBootstrap } from './nested-bootstrap.ts';
import type { PolicyStore } from './policy-store.ts';
import type { ScoringInput } from './score-job.ts';

/** What to measure. */
export interface BenchmarkPlan extends LearningBudget {
  /** Names of the catalogue; those that are learned are trained anew. */
  readonly agents: readonly string[];
  readonly taskIds: readonly TaskId[];
  /** Held-out traces for each task and split. */
  readonly episodes: number;
  /** And for the agents that plan, which are slow. */
  readonly planningEpisodes: number;
  /** Times that a learned policy is trained. */
  readonly trainingSeeds: number;
  /** Whether the shifted suites are played too. */
  readonly isShifted: boolean;
}

/** How an agent did on a task. */
export interface BenchmarkCell {
  readonly agent: string;
  readonly taskId: TaskId;
  /** `test`, or the name of a shift of it. */
  readonly split: 'test' | Shift;
  readonly score: Estimate;
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
  readonly cells: readonly BenchmarkCell[];
}

/** Agents that try futures on a simulator before they act. */
export const PLANNERS: ReadonlySet<string> = new Set(['mpc', 'oracle']);
/** Scores that a later check compares with. */
const FIRST_SCORES = 3;
/** Traces of the validation split that the shipped policy is chosen by. */
const VALIDATION_EPISODES = 30;
/** Episodes of a job. */
const CHUNK = 10;

interface Contender {
  readonly agent: string;
  readonly taskId: TaskId;
  /** For each training run the name of the shared file; the name in the catalogue where nothing is trained. */
  readonly policies: readonly string[];
  readonly isShared: boolean;
}

/** Trains what is learned, and plays all agents on the same held-out traces. `onProgress` says what is going on. */
export async function benchmarkAgents(
  plan: BenchmarkPlan,
  jobs: JobEngine,
  store: PolicyStore,
  onProgress: (line: string) => void,
): Promise<AgentBenchmark> {
  const contenders: Contender[] = [];
  for (const agent of plan.agents) {
    for (const taskId of plan.taskIds) {
      if (!isLearned(agent)) {
        contenders.push({ agent, taskId, policies: [agent], isShared: false });
        continue;
      }
      const files = await learnAll(plan, agent, taskId, jobs, store, onProgress);
      const policies = await Promise.all(files.map((file) => jobs.share(file)));
      contenders.push({ agent, taskId, policies, isShared: true });
    }
  }
  const cells: BenchmarkCell[] = [];
  for (const split of plan.isShifted ? (['test', ...SHIFTS] as const) : (['test'] as const)) {
    for (const contender of contenders) {
      const { agent, taskId } = contender;
      const count = PLANNERS.has(agent) ? plan.planningEpisodes : plan.episodes;
      const seeds = Array.from({ length: count }, (_, i) => SEED_SPLITS.test.first + i);
      const runs = await scoreRuns(contender, split === 'test' ? null : split, seeds, jobs);
      const score = {
        mean: mean(runs.flat()),
        iqm: interquartileMean(runs.flat()),
        ci95: nestedBootstrap(runs, interquartileMean),
      };
      onProgress(`${split}: ${agent} on ${taskId} ${score.iqm.toFixed(3)}`);
      cells.push({
        ...{ agent, taskId, split, score, episodes: count },
        runs: runs.map(mean),
        firstScores: runs[0]!.slice(0, FIRST_SCORES),
      });
    }
  }
  return { environment: llmserve.id, version: llmserve.version, plan, cells };
}

/** Of the training runs of an agent, the file of the one that does best on the validation split. */
export async function bestOnValidation(
  plan: BenchmarkPlan,
  agent: ShippedName,
  taskId: TaskId,
  jobs: JobEngine,
  store: PolicyStore,
  onProgress: (line: string) => void,
): Promise<Uint8Array> {
  const files = await learnAll(plan, agent, taskId, jobs, store, onProgress);
  const policies = await Promise.all(files.map((file) => jobs.share(file)));
  const seeds = Array.from({ length: VALIDATION_EPISODES }, (_, i) => SEED_SPLITS.validation.first + i);
  const runs = await scoreRuns({ agent, taskId, policies, isShared: true }, null, seeds, jobs);
  const means = runs.map(mean);
  const best = means.indexOf(Math.max(...means));
  onProgress(`${agent} on ${taskId}: run ${best} has ${means[best]!.toFixed(3)} on the validation split`);
  return files[best]!;
}

export function isLearned(agent: string): agent is ShippedName {
  return Object.hasOwn(SHIPPED_FORMATS, agent);
}

async function learnAll(
  { steps, teacher, lessons, trainingSeeds }: BenchmarkPlan,
  algorithm: ShippedName,
  taskId: TaskId,
  jobs: JobEngine,
  store: PolicyStore,
  onProgress: (line: string) => void,
): Promise<readonly Uint8Array[]> {
  const runs = Array.from(
    { length: trainingSeeds },
    (_, seed): LearningRun => ({ algorithm, taskId, seed, steps, teacher, lessons }),
  );
  const missing = runs.filter((run) => store.read(run) === undefined);
  const work = missing.map((run): Job => ({ kind: 'learn-policy', input: run as unknown as Json }));
  let learned = 0;
  await jobs.run(work, {
    onResult(file, index) {
      store.write(missing[index]!, Buffer.from(file as string, 'base64'));
      learned++;
      onProgress(`${algorithm} on ${taskId}: trained ${learned} of ${missing.length}`);
    },
  });
  return runs.map((run) => store.read(run)!);
}

/** Scores of each run on the seeds. */
async function scoreRuns(
  { taskId, policies, isShared }: Contender,
  shift: Shift | null,
  seeds: readonly number[],
  jobs: JobEngine,
): Promise<number[][]> {
  const chunks = Array.from({ length: Math.ceil(seeds.length / CHUNK) }, (_, c) =>
    seeds.slice(c * CHUNK, (c + 1) * CHUNK),
  );
  const results = (await jobs.run(
    policies.flatMap((policy) =>
      chunks.map((chunk): Job => {
        const input: ScoringInput = { policy, isShared, taskId, shift, seeds: chunk };
        return {
          kind: 'score-policy',
          input: input as unknown as Json,
          ...(isShared && { shared: [policy] }),
        };
      }),
    ),
  )) as number[][];
  return policies.map((_, p) => results.slice(p * chunks.length, (p + 1) * chunks.length).flat());
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
