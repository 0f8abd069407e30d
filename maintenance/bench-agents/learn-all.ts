import { AGENTS, type Algorithm, type ShippedName, trainSeeds } from '@servegym/agents';
import type { TaskId } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import type { BenchmarkCache } from './benchmark-cache.ts';
import type { BenchmarkPlan } from './benchmark-plan.ts';

/** Jobs, cache and output of a benchmark. */
export interface BenchmarkContext {
  readonly jobs: JobEngine;
  readonly cache: BenchmarkCache;
  /** Prints a line of progress. */
  readonly say: (line: string) => void;
}

/** A policy that was learned, and its name in the cache. */
export interface LearnedPolicy {
  readonly name: string;
  readonly file: Uint8Array;
}

/** Name of the algorithm in `servegym train`. */
const TRAINED_BY = { ppo: 'ppo', distilled: 'distill', cem: 'cem' } as const satisfies Record<
  ShippedName,
  Algorithm
>;

/** Decides the traces of the lessons and the weights that the clone starts from. */
const CLONE_SEED = 0;

/** Trains an agent as often as planned. Those that were trained before come from the cache. */
export async function learnAll(
  plan: BenchmarkPlan,
  algorithm: ShippedName,
  taskId: TaskId,
  context: BenchmarkContext,
): Promise<readonly LearnedPolicy[]> {
  const { jobs, cache, say } = context;
  const nameOf = (seed: number) => policyName(plan, algorithm, taskId, seed);
  const seeds = Array.from({ length: plan.trainingSeeds }, (_, seed) => seed);
  const missing = seeds.filter((seed) => cache.readFile(nameOf(seed)) === undefined);
  if (missing.length > 0) {
    const steps = plannedSteps(plan, algorithm);
    const run = { environment: 'llmserve', task: taskId, algorithm: TRAINED_BY[algorithm], steps } as const;
    const clone = algorithm === 'distilled' ? await findClone(plan, taskId, context) : undefined;
    let learned = 0;
    await trainSeeds(jobs, run, missing, {
      clone,
      onTrained(seed, { files }) {
        cache.writeFile(nameOf(seed), files.policy);
        learned++;
        say(`${algorithm} on ${taskId}: trained ${learned} of ${missing.length}`);
      },
    });
  }
  return seeds.map((seed) => ({ name: nameOf(seed), file: cache.readFile(nameOf(seed))! }));
}

/** The network that `distilled` goes on from: one for all training runs, since lessons of a planner take long. */
function findClone(
  { teacher, lessons }: BenchmarkPlan,
  taskId: TaskId,
  { jobs, cache, say }: BenchmarkContext,
): Promise<Uint8Array> {
  return cache.file(`clone-${taskId}-${teacher}-${lessons}.safetensors`, async () => {
    const weights = await AGENTS.llmserve.distill({
      ...{ taskId, episodes: lessons, seed: CLONE_SEED },
      demonstrate: (request) => AGENTS.llmserve.haveDemonstrated(jobs, teacher, request),
      onRound: ({ round, meanReturn, loss }) =>
        say(
          `distilled on ${taskId}: lesson ${round} earns ${meanReturn.toFixed(1)}, the student errs by ${loss.toFixed(3)} nats`,
        ),
    });
    return AGENTS.llmserve.network.encode({
      taskId,
      weights,
      training: { algorithm: 'clone', teacher, lessons },
    });
  });
}

function policyName(plan: BenchmarkPlan, algorithm: ShippedName, taskId: TaskId, seed: number): string {
  const steps = plannedSteps(plan, algorithm);
  const how = algorithm === 'distilled' ? `${steps}-${plan.teacher}-${plan.lessons}` : steps;
  return `${algorithm}-${taskId}-${how}-seed${seed}.${AGENTS.llmserve.shippedPolicies.formats[algorithm]}`;
}

function plannedSteps({ steps, fineTuningSteps }: BenchmarkPlan, algorithm: ShippedName): number {
  return algorithm === 'distilled' ? fineTuningSteps : steps;
}
