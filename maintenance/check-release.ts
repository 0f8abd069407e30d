import { Command, Option } from 'commander';
import { numberAbove } from '../packages/servegym/src/cli/arguments/options.ts';
import { serverAddress } from '../packages/servegym/src/cli/arguments/server-options.ts';
import { checkoutChecks } from './check-release/checkout-checks.ts';
import { environmentChecks } from './check-release/environment-checks.ts';
import { type ReleaseFinding, runChecks } from './check-release/release-check.ts';
import { openaiBaselineCheck, spaceChecks } from './check-release/remote-checks.ts';
import { runCommand } from './run-command.ts';

interface CheckReleaseOptions {
  readonly skipDocker: boolean;
  readonly healthyWithin: number;
  readonly spaceUrl?: URL;
  readonly runOpenaiBaseline: boolean;
  readonly json: boolean;
}

/** All checks that should pass before a release. */
function checkReleaseCommand(): Command {
  return new Command('check-release')
    .description('make all checks that should pass before a release or a submission')
    .option('--skip-docker', 'leave out the image, which takes minutes', false)
    .addOption(
      new Option('--healthy-within <seconds>', 'how soon after its start a server must be healthy')
        .default(5)
        .argParser(numberAbove(0, 3600)),
    )
    .addOption(new Option('--space-url <address>', 'also check a Space that is up').argParser(serverAddress))
    .option('--run-openai-baseline', 'also run the baseline of a language model, which costs money', false)
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nThe exit code is 0 when no check has failed, else 1.')
    .action(checkRelease);
}

async function checkRelease({
  skipDocker,
  healthyWithin: healthyWithinS,
  spaceUrl,
  runOpenaiBaseline,
  json,
}: CheckReleaseOptions): Promise<void> {
  const checks = [
    ...environmentChecks('llmserve', { graded: true, healthyWithinS }),
    ...environmentChecks('fleet', { graded: true, healthyWithinS }),
    ...environmentChecks('inferencegym', { graded: true, healthyWithinS }),
    ...environmentChecks('benchmark', { graded: false, healthyWithinS }),
    ...checkoutChecks({ skipDocker }),
    ...(spaceUrl ? spaceChecks(spaceUrl) : []),
    ...(runOpenaiBaseline ? [openaiBaselineCheck()] : []),
  ];
  const findings = await runChecks(checks, (finding) => {
    if (!json) console.log(releaseLine(finding));
  });
  const failed = findings.filter(({ passed }) => passed === false);
  if (json) console.log(JSON.stringify({ passed: failed.length === 0, checks: findings }, null, 2));
  else console.log(`\n${releaseSummary(findings)}`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

/** A line for a check, with what it found out below it. */
function releaseLine({ passed, id, description, details, seconds }: ReleaseFinding): string {
  const mark = passed === null ? '-' : passed ? '✓' : '✗';
  return `${mark} ${id.padEnd(24)}${description}\n  ${''.padEnd(24)}${details} (${seconds.toFixed(1)} s)`;
}

/** The result in a few words. */
function releaseSummary(findings: readonly ReleaseFinding[]): string {
  const count = (wanted: boolean | null) => findings.filter(({ passed }) => passed === wanted).length;
  const verdict = count(false) === 0 ? 'ready' : 'not ready';
  return `${verdict}: ${count(true)} passed, ${count(false)} failed, ${count(null)} left out`;
}

await runCommand(checkReleaseCommand());
