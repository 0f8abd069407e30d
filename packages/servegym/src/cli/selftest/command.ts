import { ENVIRONMENT_IDS } from '@servegym/environments';
import { type SelfTestReport, selfTest } from '@servegym/openenv';
import { Command, Option } from 'commander';
import { openEnvironment } from '../../server/open-environment.ts';
import { jsonObject, wholeNumber } from '../arguments/options.ts';
import { criterionLines } from '../validate/validation-lines.ts';

interface SelftestOptions {
  readonly env?: string;
  readonly action?: Record<string, unknown>;
  readonly reset: Record<string, unknown>;
  readonly steps: number;
  readonly json: boolean;
}

/** `servegym selftest`: plays environments in this process, without a server. */
export function selftestCommand(): Command {
  return new Command('selftest')
    .description('Play environments in this process, without a server. Ends with 1 when one fails.')
    .option(
      '--env <name>',
      `${ENVIRONMENT_IDS.join(', ')}, or a module that exports an environment (default: all of these)`,
    )
    .addOption(
      new Option(
        '--action <json>',
        'action of every step (default: that of the task, or made from the schema)',
      ).argParser(jsonObject),
    )
    .addOption(new Option('--reset <json>', 'options of every reset').argParser(jsonObject).default({}, '{}'))
    .addOption(
      new Option('--steps <n>', 'steps of each episode').default(3).argParser(wholeNumber(1, 10_000)),
    )
    .option('--json', 'print one JSON array', false)
    .action(run);
}

async function run({ env, action, reset, steps, json }: SelftestOptions): Promise<void> {
  const reports: SelfTestReport[] = [];
  for (const name of env === undefined ? ENVIRONMENT_IDS : [env]) {
    const { definition } = await openEnvironment(name);
    const report = await selfTest(definition, { action, resetOptions: reset, steps });
    reports.push(report);
    if (!json) console.log(`${reportLines(report)}\n`);
  }
  if (json) console.log(JSON.stringify(reports, null, 2));
  process.exitCode = reports.every(({ passed }) => passed) ? 0 : 1;
}

function reportLines({ environment, version, passed, criteria, observation }: SelfTestReport): string {
  const applicable = criteria.filter((criterion) => criterion.passed !== null);
  const met = applicable.filter((criterion) => criterion.passed).length;
  return [
    `${environment} ${version}`,
    ...criteria.map(criterionLines),
    ...(observation === null ? [] : [`last observation: ${JSON.stringify(observation)}`]),
    `${passed ? 'passed' : 'FAILED'}: ${met} of ${applicable.length}`,
  ].join('\n');
}
