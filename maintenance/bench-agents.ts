import { join } from 'node:path';
import { AGENTS as REGISTRY, type ShippedName } from '@servegym/agents';
import { llmserve, type TaskId } from '@servegym/environments';
import { Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../packages/servegym/src/cli/arguments/options.ts';
import { InputError } from '../packages/servegym/src/cli/input-error.ts';
import { addJobOptions, type JobOptions, withJobs } from '../packages/servegym/src/cli/jobs/open-jobs.ts';
import { requireWritable, writeOutputFile } from '../packages/servegym/src/cli/output/write-output-file.ts';
import { agentBenchmarkPage } from './bench-agents/agent-benchmark-report.ts';
import { benchmarkAgents, bestOnValidation } from './bench-agents/benchmark-agents.ts';
import { BenchmarkCache } from './bench-agents/benchmark-cache.ts';
import { type BenchmarkPlan, isLearned } from './bench-agents/benchmark-plan.ts';
import type { BenchmarkContext } from './bench-agents/learn-all.ts';
import { shipPolicies } from './bench-agents/ship-policies.ts';
import { runCommand } from './run-command.ts';

interface BenchAgentsOptions extends JobOptions, Omit<BenchmarkPlan, 'taskIds'> {
  readonly task: TaskId | 'all';
  readonly shifted: boolean;
  readonly cache: string;
  readonly ship: boolean;
  readonly out?: string;
  readonly json: boolean;
}

const LEARNED = Object.keys(REGISTRY.llmserve.shippedPolicies.formats) as ShippedName[];
const AGENTS = [
  ...['random', 'default', 'heuristic', 'static-tuned', 'rule', 'bandit', 'cem', 'ppo'],
  ...['distilled', 'mpc', 'mpc-unshifted', 'oracle'],
] as const;

/** All agents on all tasks, on traffic that nothing was tuned on. */
function benchAgentsCommand(): Command {
  const command = new Command('bench-agents')
    .description('train what is learned, and play all agents on the same held-out traffic')
    .addOption(
      new Option('--agents <names>', 'agents to play, separated by commas')
        .argParser(agentNames)
        .default(AGENTS, AGENTS.join(',')),
    )
    .addOption(
      new Option('--task <id>', 'a task').choices([...llmserve.tasks.shippedIds, 'all']).default('all'),
    )
    .addOption(count('--episodes <n>', 'held-out traces for each task', 100))
    .addOption(count('--shifted-episodes <n>', 'and under each shift', 100))
    .addOption(count('--planning-episodes <n>', 'the same for the agents that plan, which are slow', 100))
    .addOption(count('--planning-shifted-episodes <n>', 'and for them under each shift', 10, 0))
    .addOption(count('--training-seeds <n>', 'times that a learned agent is trained', 10))
    .addOption(count('--steps <n>', 'windows that each of them learns from', 120_000))
    .addOption(
      new Option('--teacher <name>', 'policy that `distilled` learns from')
        .choices(REGISTRY.llmserve.policies.map(({ name }) => name))
        .default('mpc'),
    )
    .addOption(count('--lessons <n>', 'episodes that the teacher plays or comments on', 48))
    .addOption(
      count('--fine-tuning-steps <n>', 'windows that `distilled` learns from after the lessons', 120_000),
    )
    .option('--no-shifted', 'leave out the shifted suites')
    .option(
      '--cache <folder>',
      'where policies and returns are kept, for a run that goes on',
      'runs/bench-agents',
    )
    .option(
      '--ship',
      'put the best on the validation split where `--agent ppo` finds it; play nothing',
      false,
    )
    .option('--out <file.md>', 'write the page, and the figures beside it as .json');
  return addJobOptions(command)
    .option('--json', 'print the figures as one JSON object', false)
    .addHelpText(
      'after',
      '\nWith the defaults this takes about two hours on two cores. A run that was stopped goes on where it was.',
    )
    .action(benchAgents);
}

async function benchAgents(options: BenchAgentsOptions): Promise<void> {
  const { agents, task, shifted, ship, out, json, cache, threads, queue, ...budget } = options;
  const { episodes, shiftedEpisodes, planningEpisodes, planningShiftedEpisodes } = budget;
  const plan: BenchmarkPlan = {
    agents,
    taskIds: task === 'all' ? llmserve.tasks.shippedIds : [task],
    ...budget,
    shiftedEpisodes: shifted ? shiftedEpisodes : 0,
    planningEpisodes: Math.min(planningEpisodes, episodes),
    planningShiftedEpisodes: Math.min(planningShiftedEpisodes, shiftedEpisodes),
  };
  await requireWritable(out);
  await withJobs({ threads, queue }, async (jobs) => {
    const context: BenchmarkContext = {
      jobs,
      cache: new BenchmarkCache(join(cache, `${llmserve.id}-${llmserve.version}`)),
      say: (line) => console.error(line),
    };
    if (ship) {
      const learned = agents.filter(isLearned);
      if (learned.length === 0) throw new InputError(`expected agents that learn: ${LEARNED.join(', ')}`);
      await shipPolicies(plan, learned, (agent, taskId) => bestOnValidation(plan, agent, taskId, context));
      return;
    }
    const benchmark = await benchmarkAgents(plan, context);
    const figures = `${JSON.stringify(benchmark, null, 1)}\n`;
    if (out !== undefined) {
      await writeOutputFile(out, [agentBenchmarkPage(benchmark)]);
      await writeOutputFile(out.replace(/\.md$/, '.json'), [figures]);
    }
    console.log(json ? figures : agentBenchmarkPage(benchmark));
  });
}

function agentNames(text: string): string[] {
  const names = text.split(',');
  for (const name of names) {
    if (isLearned(name)) continue;
    try {
      REGISTRY.llmserve.createPolicy(name);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  }
  return names;
}

function count(flags: string, description: string, standard: number, least = 1): Option {
  return new Option(flags, description).default(standard).argParser(wholeNumber(least, 1e9));
}

await runCommand(benchAgentsCommand());
