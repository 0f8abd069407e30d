import {
  type FleetShift,
  fleet,
  llmserve,
  type ServeScenario,
  type Shift,
  WORKLOAD_IDS,
  type WorkloadId,
} from '@servegym/environments';
import { type Command, Option } from 'commander';
import { numberFrom } from './options.ts';
import { loadTrace } from './own-inputs.ts';

/** Options that say under which traffic tasks are played. */
export interface ScenarioArguments {
  readonly traffic?: WorkloadId;
  readonly trace?: string;
  readonly rateScale?: number;
  readonly profile?: string;
  readonly shift?: Shift | FleetShift;
}

/** Adds `--traffic`, `--trace`, `--rate-scale`, `--profile` and `--shift` to a command. */
export function addScenarioOptions(command: Command): Command {
  return command
    .addOption(new Option('--traffic <id>', 'requests as a public trace has them').choices(WORKLOAD_IDS))
    .addOption(new Option('--trace <file>', 'requests of your own').conflicts('traffic'))
    .option('--rate-scale <x>', 'arrivals come this many times as fast', numberFrom(0.01, 20))
    .option('--profile <name>', "the engine profile, instead of the task's own")
    .addOption(
      new Option('--shift <name>', 'change the task, such as its GPU, model or traffic').choices([
        ...new Set([...llmserve.shifts, ...fleet.shifts]),
      ]),
    );
}

/**
 * The reset options that these arguments stand for.
 * @param taskId of a task of one's own that is to be played under them
 * @throws InputError, TraceError or EnvironmentError
 */
export async function readScenario(
  { traffic, trace, rateScale, profile, shift }: ScenarioArguments,
  taskId?: string,
): Promise<ServeScenario> {
  const scenario = {
    ...(traffic && { traffic }),
    ...(trace !== undefined && { trace: (await loadTrace(trace)).name }),
    ...(rateScale !== undefined && { rate_scale: rateScale }),
    ...(profile !== undefined && { profile }),
    ...(shift && { shift }),
  };
  llmserve.choose({ ...scenario, ...(taskId !== undefined && { task_id: taskId }) });
  const { task_id, ...pinned } = llmserve.resetOptions().parse(scenario);
  return pinned;
}

/** `--task-file`: a task of one's own to do something with, in the place of one by its name. */
export function taskFileOption(): Option {
  return new Option(
    '--task-file <file>',
    'a task of your own, JSON or a module, in the place of --task',
  ).conflicts('task');
}
