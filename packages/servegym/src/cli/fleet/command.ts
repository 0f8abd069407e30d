import { listFleetPolicies } from '@servegym/agents';
import {
  type FleetRequests,
  type FleetTask,
  type FleetTaskId,
  fleet,
  REQUEST_CLASSES,
} from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { drawPriorities, scaleRate } from '@servegym/simulator';
import { Command, Option } from 'commander';
import { findFleetPolicy } from '../arguments/find-fleet-policy.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { loadFleetTask } from '../arguments/own-inputs.ts';
import { taskFileOption } from '../arguments/scenario-options.ts';
import { addTraceOptions, readTraceArgument, type TraceArguments } from '../arguments/trace-arguments.ts';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { parseShares } from '../simulate/serving-changes.ts';
import { fleetJson, fleetTable } from './fleet-report.ts';
import { playFleet } from './play-fleet.ts';

interface FleetOptions extends TraceArguments {
  readonly task: FleetTaskId;
  readonly taskFile?: string;
  readonly trace?: string;
  readonly policy: string;
  readonly seed: number;
  readonly hours?: number;
  readonly profile?: string;
  readonly rateScale: number;
  readonly classShares?: number[];
  readonly json: boolean;
}

/** `servegym fleet`: autoscalers on a fleet of simulated replicas. */
export function fleetCommand(): Command {
  const names = listFleetPolicies().map(({ name, description }) => `  ${name.padEnd(12)}${description}`);
  const command = new Command('fleet')
    .description(
      'Play autoscalers on a fleet of simulated replicas. The report has their revenue, their cost and how many requests met their objectives. Requests come from a task or from your trace.',
    )
    .addOption(
      new Option('--task <id>', 'task that gives requests, objectives and prices')
        .choices(fleet.tasks.shippedIds)
        .default('diurnal'),
    )
    .addOption(taskFileOption())
    .option(
      '--trace <file>',
      'your own requests instead: CSV, JSON lines, Parquet or a result of vllm bench serve or GuideLLM',
    )
    .option(
      '--policy <names>',
      'policies to play, one after another: names, or files that `servegym train --env fleet` wrote',
      'hpa,saturation,rule',
    )
    .addOption(
      new Option('--hours <n>', "how long the task's requests come (default: those of the task)")
        .argParser(numberAbove(0, 168))
        .conflicts('trace'),
    )
    .option('--profile <name>', "engine profile of a replica (default: the task's)")
    .addOption(
      new Option('--rate-scale <factor>', 'let the requests arrive this many times as fast')
        .default(1)
        .argParser(numberAbove(0)),
    )
    .addOption(
      new Option(
        '--class-shares <shares>',
        `classes drawn for the requests of a trace, ${REQUEST_CLASSES.join(', ')}: for instance 0.7,0.2,0.1 (default: all interactive)`,
      ).argParser(parseShares),
    )
    .addOption(
      new Option('--seed <n>', 'seed of the requests and of cold starts')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Policies, with a number behind a colon where they take one:
${names.join('\n')}

Examples:
  servegym fleet --task flash_crowds --policy static:8,hpa:30,hpa:40,keda,rule
  servegym fleet --trace azure-llm-2023-conv.csv --rate-scale 8 --policy hpa,rule --json

A request earns its price when it meets the objectives of its class. A replica is billed from the moment it is asked for
until it stops.`,
    )
    .action(simulateFleet);
  return addTraceOptions(command);
}

async function simulateFleet(options: FleetOptions): Promise<void> {
  const names = options.policy.split(',');
  const policies = await Promise.all(names.map(findFleetPolicy));
  const { task, requests, source } = await playedTask(options);
  const runs = policies.map(({ policy, taskId }, i) => ({
    ...playFleet(task, options.seed, requests, policy),
    // Policies of several trainings have one name.
    ...(taskId !== undefined && { policy: names[i]! }),
  }));
  printResult(
    options.json,
    () => fleetJson(task, source, runs),
    () => fleetTable(task, source, requests.inputTokens.length, runs),
  );
}

/** The task with the profile, length and requests that were asked for. */
async function playedTask(
  options: FleetOptions,
): Promise<{ task: FleetTask; requests: FleetRequests; source: string }> {
  const { trace: path, seed, hours, rateScale, classShares } = options;
  const { taskFile } = options;
  const known = taskFile === undefined ? fleet.tasks.shipped[options.task] : await loadFleetTask(taskFile);
  const task = { ...known, profile: findProfile(options.profile ?? known.profile).name };
  if (path === undefined) {
    if (classShares !== undefined) {
      throw new InputError('--class-shares: expected with --trace; the requests of a task have classes');
    }
    const windows = hours === undefined ? task.windows : Math.ceil((hours * 3600) / task.windowSeconds);
    const played = fleet.scaleArrivals({ ...task, windows }, rateScale);
    return { task: played, requests: fleet.drawRequests(played, seed), source: `task ${task.id}` };
  }
  if (classShares !== undefined && classShares.length > REQUEST_CLASSES.length) {
    throw new InputError(
      `--class-shares: expected at most ${REQUEST_CLASSES.length} shares (${REQUEST_CLASSES.join(', ')}), got ${classShares.length}`,
    );
  }
  const trace = scaleRate((await readTraceArgument(path, options)).trace, rateScale);
  const requests = trace.arrivalMs.length;
  const seconds = trace.arrivalMs[requests - 1] / 1000;
  const classes = classShares === undefined ? undefined : drawPriorities(requests, classShares, seed);
  return {
    // One window more than the trace lasts, so that the last requests can be answered.
    task: { ...task, windows: Math.ceil(seconds / task.windowSeconds) + 1 },
    requests: fleet.traceRequests(trace, classes),
    source: trace.source,
  };
}
