import { ENVIRONMENT_IDS } from '@servegym/environments';
import { selfTest } from '@servegym/openenv';
import { type ValidationReport, validateServer } from '@servegym/openenv/validate';
import { openEnvironment } from '../server/open-environment.ts';
import { above, jsonObject, serverAddress, whole } from './arguments/options.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { printResult } from './output/print-result.ts';

const options = {
  url: { value: '<address>', help: 'a running server', parse: serverAddress },
  env: {
    value: '<name>',
    help: `in this process: ${ENVIRONMENT_IDS.join(', ')}, or a module that exports an environment (default without --url: all of these)`,
    conflicts: ['url'],
  },
  action: {
    value: '<json>',
    help: 'a valid action (default: that of the task, or made from the schema)',
    parse: jsonObject,
  },
  reset: {
    value: '<json>',
    help: 'options of every reset',
    parse: jsonObject,
    default: {},
    defaultText: '{}',
  },
  steps: whole('<n>', 1, 10_000, 'steps of each episode', 3),
  sessions: whole('<n>', 1, 1000, 'most sessions to open in order to find out what a full server says', 16),
  timeout: above('<seconds>', 0, 600, 'how long a reply may take', 10),
  token: { value: '<text>', help: 'sent as `authorization: Bearer`' },
  strict: { help: 'count advised criteria as required' },
  json: { help: 'print one JSON object, as `openenv validate` does; a list of them without --url' },
} as const satisfies OptionTable;

type ValidateOptions = OptionValues<typeof options>;

/** `servegym validate`: whether a server, or an environment in this process, is one that clients can rely on. */
export const validateCommand = () =>
  defineCommand({
    description: 'Check any running OpenEnv server, or play environments in this process.',
    options,
    after: `The first six criteria of a server are those of \`openenv validate --url\`. The exit code is 0 when all required ones are
met, else 1. It resets sessions and plays a few steps, so do not point it at an environment whose actions do harm.`,
    async action(given) {
      const { url } = given;
      const isSound = url === undefined ? await validateHere(given) : await validateAt(url, given);
      return isSound ? 'yes' : 'no';
    },
  });

/** Plays environments in this process, without a server. */
async function validateHere({ env, action, reset, steps, json }: ValidateOptions) {
  const reports: Awaited<ReturnType<typeof selfTest>>[] = [];
  for (const name of env === undefined ? ENVIRONMENT_IDS : [env]) {
    const { definition } = await openEnvironment(name);
    const report = await selfTest(definition, { action, resetOptions: reset, steps });
    reports.push(report);
    if (!json) console.log(`${reportLines(report)}\n`);
  }
  if (json) console.log(JSON.stringify(reports, null, 2));
  return reports.every(({ passed }) => passed);
}

function reportLines({
  environment,
  version,
  passed,
  criteria,
  rfc008,
  observation,
}: Awaited<ReturnType<typeof selfTest>>): string {
  const applicable = criteria.filter((criterion) => criterion.passed !== null);
  const met = applicable.filter((criterion) => criterion.passed).length;
  return [
    `${environment} ${version}`,
    ...criteria.map(criterionLines),
    ...(observation === null ? [] : [`last observation: ${JSON.stringify(observation)}`]),
    rfc008Line(rfc008),
    `${passed ? 'passed' : 'FAILED'}: ${met} of ${applicable.length}`,
  ].join('\n');
}

async function validateAt(base: URL, options: ValidateOptions) {
  const { action, reset, steps, json, strict, token } = options;
  const timeoutMs = 1000 * options.timeout;
  const failure = json ? null : await connectionFailure(base, timeoutMs);
  if (failure !== null) {
    console.error(`error: ${base.href} cannot be reached: ${failure}. Start the server, or correct --url.`);
    return false;
  }
  const subject = {
    action,
    resetOptions: reset,
    steps,
    timeoutMs,
    mostSessions: options.sessions,
    headers: token ? { authorization: `Bearer ${token}` } : ({} as Record<string, string>),
  };
  const report = await validateServer(base, subject, (criterion) => {
    if (!json) console.log(criterionLines(criterion));
  });
  printResult(json, report, {
    text: () => `\n${rfc008Line(report.rfc008)}\n${report.target}: ${summaryOf(report)}`,
  });
  return strict ? report.summary.failed_criteria.length === 0 : report.passed;
}

/** Why no request to the server is answered; `null` when one is. */
async function connectionFailure(base: URL, timeoutMs: number): Promise<string | null> {
  try {
    await fetch(new URL('health', base), { signal: AbortSignal.timeout(timeoutMs) });
    return null;
  } catch (error) {
    const { message, cause } = error as Error;
    return (cause as { code?: string } | undefined)?.code ?? message;
  }
}

/** A line for a criterion, and below it what was wrong. */
function criterionLines({
  id,
  description,
  required,
  passed,
  details,
  expected,
  actual,
}: ValidationReport['criteria'][number]): string {
  const mark = passed === null ? '-' : passed ? '✓' : required ? '✗' : '!';
  const lines = [`${mark} ${id.padEnd(34)}${description}`];
  if (!passed && details) lines.push(`    ${details}`);
  if (passed === false && expected !== undefined) {
    lines.push(`    expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
  }
  return lines.join('\n');
}

/** The checks of RFC 008 that are met, that are not, and how many need more than a validation has. */
function rfc008Line(checks: ValidationReport['rfc008']): string {
  const named = (status: string) =>
    checks.filter((check) => check.status === status).map(({ check_id }) => check_id);
  const [met, failed, skipped] = ['pass', 'fail', 'skip'].map(named);
  return [
    `OpenEnv RFC 008: ${met.length} of ${checks.length} local checks pass: ${met.join(', ')}`,
    ...(failed.length > 0 ? [`  not met: ${failed.join(', ')}`] : []),
    `  ${skipped.length} are not judged: they need the package, a sandbox or an oracle (--json names them)`,
  ].join('\n');
}

function summaryOf({ passed, mode, standard_profile, summary }: ValidationReport): string {
  const advised = summary.total_count - summary.required_total_count;
  const advisedPassed = summary.passed_count - summary.required_passed_count;
  return [
    `${passed ? 'valid' : 'not valid'} (${standard_profile}, ${mode} mode):`,
    `${summary.required_passed_count} of ${summary.required_total_count} required criteria (✗ where not),`,
    `${advisedPassed} of ${advised} advised ones (! where not);`,
    `${summary.not_applicable.length} do not apply (-)`,
  ].join(' ');
}
