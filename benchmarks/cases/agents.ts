import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import {
  AGENTS,
  type Algorithm,
  type Evaluation,
  evaluate,
  findPolicy,
  gainFigures,
  trainSeeds,
} from '@servegym/agents';
import { firstSeeds, llmserve, type TaskId } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import { interquartileMean, mean } from '@servegym/simulator/statistics';
import type { ShippedName } from '../../packages/agents/src/policies/serve-policies.ts';
import { codeVersion, openJobs, stoppable } from '../../packages/servegym/src/cli/jobs.ts';
import { nestedBootstrap } from '../../packages/simulator/src/statistics/bootstrap.ts';
import { type AgentBenchmark, type AgentCell, agentsPage, PLANNERS } from '../agents/agents-page.ts';
import { benchmark, text } from '../harness.ts';

const { distill, haveDemonstrated, network, shippedPolicies } = AGENTS.llmserve;

/** Name of the algorithm in `servegym train`. */
const TRAINED_BY = { ppo: 'ppo', distilled: 'distill' } as const satisfies Record<ShippedName, Algorithm>;
/** Scores that a later check compares with. */
const FIRST_SCORES = 3;
/** Traces of the validation split that the shipped policy is chosen by. */
const VALIDATION_EPISODES = 30;
/** Decides the traces of the lessons and the weights that the clone starts from. */
const CLONE_SEED = 0;

export default benchmark({
  what: 'All agents of llmserve on the same held-out traffic; those that learn are trained first, so many windows each time. `--out` gets the page docs/benchmarks.md, with its figures beside it as .json. `--shifted-episodes 0` leaves the shifts out; agents that plan are slow and have numbers of their own. `distilled` has `--lessons` episodes of its teacher, then `--fine-tuning-steps`. `--ship` plays nothing, and puts the policies that are best on the validation split where `evaluate ppo` finds them. With the defaults it takes hours; a run that was stopped goes on with what `--cache` has.',
  options: {
    agents: 'random,default,heuristic,static-tuned,rule,any-server,ppo,distilled,mpc,mpc-unshifted,oracle',
    task: 'all',
    episodes: 100,
    'shifted-episodes': 100,
    'planning-episodes': 100,
    'planning-shifted-episodes': 10,
    'training-seeds': 10,
    steps: 120_000,
    teacher: 'mpc',
    lessons: 48,
    'fine-tuning-steps': 120_000,
    ship: false,
    cache: 'runs/bench-agents',
    out: text,
    threads: availableParallelism(),
    queue: text,
  },
  async *run({ ship, cache, out, threads, queue, ...plan }) {
    const agents = plan.agents.split(',');
    for (const agent of agents) if (!isLearned(agent)) findPolicy('llmserve', agent);
    const taskIds = llmserve.tasks.shippedIds.filter((id) => plan.task === 'all' || id === plan.task);
    if (taskIds.length === 0)
      throw new Error(`expected a task, all or one of ${llmserve.tasks.shippedIds.join(', ')}`);
    const jobs = stoppable(await openJobs({ threads, queue }));
    const context: Context = { jobs, cache: join(cache, `${llmserve.id}-${llmserve.version}`), plan };
    try {
      if (ship) {
        for (const agent of agents.filter(isLearned))
          for (const taskId of taskIds) yield* shipBest(agent, taskId, context);
        return;
      }
      const cells: AgentCell[] = [];
      for (const split of plan['shifted-episodes'] > 0 ? ['test', ...llmserve.shifts] : ['test'])
        for (const agent of agents)
          for (const taskId of taskIds) {
            const cell = await playedCell(agent, taskId, split, context);
            if (cell === null) continue;
            cells.push(cell);
            const { score, gains } = cell;
            const [low, high] = score.ci95;
            yield { split, agent, task: taskId, score: score.iqm, low, high, gain: gains?.gain.mean ?? null };
          }
      if (out === undefined) return;
      const found: AgentBenchmark = { environment: llmserve.id, version: llmserve.version, plan, cells };
      writeFileSync(out, agentsPage(found));
      writeFileSync(out.replace(/\.md$/, '.json'), `${JSON.stringify(found, null, 1)}\n`);
    } finally {
      await jobs.close();
    }
  },
});

interface Context {
  readonly jobs: JobEngine;
  /** Folder of what was learned and played. */
  readonly cache: string;
  readonly plan: AgentBenchmark['plan'];
}

function isLearned(agent: string): agent is ShippedName {
  return Object.hasOwn(TRAINED_BY, agent);
}

/** Result of an agent on a task; `null` where it plays nothing. What was played before comes from the cache. */
async function playedCell(
  agent: string,
  taskId: TaskId,
  split: string,
  context: Context,
): Promise<AgentCell | null> {
  const { jobs, cache, plan } = context;
  const kind = PLANNERS.has(agent) ? 'planning-' : '';
  const seeds = firstSeeds('test', plan[`${kind}${split === 'test' ? '' : 'shifted-'}episodes`]);
  if (seeds.length === 0) return null;
  const players = isLearned(agent)
    ? await learnAll(agent, taskId, context)
    : [{ name: `${agent}-${taskId}`, source: agent }];
  const name = `${players[0]!.name}-${players.length}-${split}-${seeds.length}.json`;
  const kept = await keptFile(join(cache, codeVersion(), name), async () => {
    const played: Evaluation[] = [];
    for (const { source } of players) {
      const policy = findPolicy('llmserve', source);
      const inputs = { scenario: split === 'test' ? {} : { shift: split } };
      played.push(
        await evaluate({ environment: 'llmserve', policy, taskIds: [taskId], seeds, inputs }, jobs),
      );
    }
    const episodes = played.map(({ tasks }) => tasks[0]!.episodes);
    const runs = episodes.map((run) => run.map(({ score }) => score));
    const score = {
      mean: mean(runs.flat()),
      iqm: interquartileMean(runs.flat()),
      ci95: nestedBootstrap(runs, interquartileMean),
    };
    const anchored = episodes.flat().map((episode) => ({ ...episode, anchors: episode.anchors! }));
    const cell: AgentCell = {
      ...{ agent, taskId, split, score, gains: gainFigures([anchored]), episodes: seeds.length },
      runs: runs.map(mean),
      firstScores: runs[0]!.slice(0, FIRST_SCORES),
    };
    return Buffer.from(JSON.stringify(cell));
  });
  return JSON.parse(Buffer.from(kept).toString());
}

/** A policy that was learned, and its name in the cache. */
interface Learned {
  readonly name: string;
  readonly source: Uint8Array;
}

/** Trains an agent as often as planned. Those that were trained before come from the cache. */
async function learnAll(agent: ShippedName, task: TaskId, context: Context): Promise<Learned[]> {
  const { jobs, cache, plan } = context;
  const steps = plan[agent === 'distilled' ? 'fine-tuning-steps' : 'steps'];
  const how = agent === 'distilled' ? `${steps}-${plan.teacher}-${plan.lessons}` : steps;
  const fileOf = (seed: number) => `${agent}-${task}-${how}-seed${seed}.safetensors`;
  const seeds = Array.from({ length: plan['training-seeds'] }, (_, seed) => seed);
  const missing = seeds.filter((seed) => !existsSync(join(cache, fileOf(seed))));
  if (missing.length > 0) {
    const run = { environment: 'llmserve', task, algorithm: TRAINED_BY[agent], steps } as const;
    await trainSeeds(jobs, run, missing, {
      clone: agent === 'distilled' ? await findClone(task, context) : undefined,
      onTrained(seed, { files }) {
        writeWhole(join(cache, fileOf(seed)), files.policy);
        console.error(`${agent} on ${task}: trained seed ${seed}`);
      },
    });
  }
  return seeds.map((seed) => ({ name: fileOf(seed), source: readFileSync(join(cache, fileOf(seed))) }));
}

/** The network that `distilled` goes on from: one for all training runs, since lessons of a planner take long. */
function findClone(taskId: TaskId, { jobs, cache, plan }: Context): Promise<Uint8Array> {
  const { teacher, lessons } = plan;
  return keptFile(join(cache, `clone-${taskId}-${teacher}-${lessons}.safetensors`), async () => {
    const weights = await distill({
      ...{ taskId, episodes: lessons, seed: CLONE_SEED },
      demonstrate: (request) => haveDemonstrated(jobs, teacher, request),
      onRound: ({ round, loss }) =>
        console.error(`distilled on ${taskId}: lesson ${round}, the student errs by ${loss.toFixed(3)} nats`),
    });
    return network.encode({ taskId, weights, training: { algorithm: 'clone', teacher, lessons } });
  });
}

/** Puts the training run with the highest mean return on the validation split where the catalogue finds it. */
async function* shipBest(agent: ShippedName, taskId: TaskId, context: Context) {
  const learned = await learnAll(agent, taskId, context);
  const seeds = firstSeeds('validation', VALIDATION_EPISODES);
  const returns: number[] = [];
  for (const { source } of learned) {
    const policy = findPolicy('llmserve', source);
    const { tasks } = await evaluate(
      { environment: 'llmserve', policy, taskIds: [taskId], seeds },
      context.jobs,
    );
    returns.push(tasks[0]!.return.mean);
  }
  const best = returns.indexOf(Math.max(...returns));
  const file = learned[best]!.source;
  writeFileSync(shippedPolicies.file(agent, taskId), file);
  writeFileSync(shippedPolicies.onnx(agent, taskId), network.onnx(file));
  yield { agent, task: taskId, run: best, 'mean return on the validation split': returns[best] };
}

/** The file of that path; makes it, and keeps it, where there is none. */
async function keptFile(path: string, make: () => Promise<Uint8Array>): Promise<Uint8Array> {
  if (!existsSync(path)) writeWhole(path, await make());
  return readFileSync(path);
}

/** Writes a file of which a run that is stopped leaves no half. */
function writeWhole(path: string, content: Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.part`, content);
  renameSync(`${path}.part`, path);
}
