import { ENVIRONMENTS, type RegisteredEnvironment, WORKLOAD_IDS } from '@servegym/environments';
import type { OptionTable, OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { numberFrom } from './options.ts';
import { loadTrace } from './own-inputs.ts';

/** Options that say under which traffic, and on which server, tasks are played. */
export const scenarioOptions = {
  traffic: {
    value: '<file|model>',
    help: 'requests of your own, or the model of a public trace (docs/traffic.md)',
  },
  rateScale: {
    value: '<x>',
    help: 'arrivals come this many times as fast',
    parse: numberFrom(0.01, 20),
  },
  profile: { value: '<name>', help: "the engine profile, instead of the task's own" },
  shift: {
    value: '<name>',
    help: 'change the task, such as its GPU, model or traffic',
    choices: [...new Set(Object.values(ENVIRONMENTS).flatMap(({ shifts }): readonly string[] => shifts))],
  },
} as const satisfies OptionTable;

export type Scenario = Readonly<Record<string, unknown>>;

/**
 * The reset options that these options stand for.
 * @param taskIds the tasks that are to be played under them
 * @throws InputError, SimulatorError or EnvironmentError
 */
export async function readScenario(
  entry: RegisteredEnvironment,
  { traffic, rateScale, profile, shift }: OptionValues<typeof scenarioOptions>,
  taskIds: readonly (string | number)[],
): Promise<Scenario> {
  const isModel = traffic !== undefined && (WORKLOAD_IDS as readonly string[]).includes(traffic);
  const given = {
    traffic: isModel ? traffic : undefined,
    trace: isModel ? undefined : traffic,
    rate_scale: rateScale,
    profile,
    shift,
  };
  const { shape } = entry.resetOptions();
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || Object.hasOwn(shape, name)) continue;
    const flag = name === 'trace' ? 'traffic' : name.replace('_', '-');
    throw new InputError(`--${flag} means nothing to ${entry.id}: leave it out, or choose another --env`);
  }
  const trace = given.trace === undefined ? undefined : (await loadTrace(given.trace)).name;
  const scenario = Object.fromEntries(
    Object.entries({ ...given, trace }).filter(([, value]) => value !== undefined),
  );
  for (const task_id of taskIds) entry.choose({ ...scenario, task_id });
  // The schema pins a trace by its digest.
  const pinned: Scenario = entry.resetOptions().parse(scenario);
  return Object.fromEntries(Object.keys(scenario).map((name) => [name, pinned[name]]));
}
