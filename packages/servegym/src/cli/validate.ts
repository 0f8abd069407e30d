import { ENVIRONMENT_IDS } from '@servegym/environments';
import { type ValidationReport, validateServer } from '@servegym/openenv/validate';
import { startServer } from '../server/start-server.ts';
import { above, jsonObject, serverAddress, whole } from './arguments/options.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { printResult } from './output/print-result.ts';

const options = {
  url: { value: '<address>', help: 'a running server', parse: serverAddress },
  env: {
    value: '<name>',
    help: `served by this command: ${ENVIRONMENT_IDS.join(', ')}, or a module that exports an environment (default without --url: all of these)`,
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

type ValidateOptions = Omit<OptionValues<typeof options>, 'url'>;

export const validateCommand = () =>
  defineCommand({
    options,
    after: `The first six criteria of a server are those of \`openenv validate --url\`. The exit code is 0 when all required ones are
met, else 1. It resets sessions and plays a few steps, so do not point it at an environment whose actions do harm.`,
    async action({ url, ...given }) {
      return (await (url === undefined ? validateHere(given) : validateAt(url, given))) ? 'yes' : 'no';
    },
  });

/** OpenEnv's own examples do without; an environment that is trained and graded on may not. */
const NEEDED_OF_OWN = 'episode_end';

/** Serves environments on a port of this machine, and validates each. */
async function validateHere(options: ValidateOptions) {
  const reports: object[] = [];
  let areSound = true;
  for (const name of options.env === undefined ? ENVIRONMENT_IDS : [options.env]) {
    const server = await startServer({ environments: [name] });
    try {
      const { name: environment, version } = await (await fetch(`${server.url}/metadata`)).json();
      if (!options.json) console.log(`${reports.length > 0 ? '\n' : ''}${environment} ${version}`);
      const report = await reportOn(new URL(server.url), options);
      reports.push({ environment, version, ...report });
      areSound &&= isSound(report, options) && !report.summary.failed_criteria.includes(NEEDED_OF_OWN);
      if (!options.json) console.log(conclusion(report));
    } finally {
      await server.close();
    }
  }
  if (options.json) console.log(JSON.stringify(reports, null, 2));
  return areSound;
}

async function validateAt(base: URL, options: ValidateOptions) {
  const { json, timeout } = options;
  const failure = json ? null : await connectionFailure(base, 1000 * timeout);
  if (failure !== null) {
    console.error(`error: ${base.href} cannot be reached: ${failure}. Start the server, or correct --url.`);
    return false;
  }
  const report = await reportOn(base, options);
  printResult(json, report, { text: conclusion });
  return isSound(report, options);
}

function reportOn(base: URL, { action, reset, steps, json, sessions, timeout, token }: ValidateOptions) {
  const subject = {
    ...{ action, resetOptions: reset, steps, timeoutMs: 1000 * timeout, mostSessions: sessions },
    headers: token ? { authorization: `Bearer ${token}` } : ({} as Record<string, string>),
  };
  return validateServer(base, subject, (criterion) => {
    if (!json) console.log(criterionLines(criterion));
  });
}

function isSound({ summary, passed }: ValidationReport, { strict }: ValidateOptions): boolean {
  return strict ? summary.failed_criteria.length === 0 : passed;
}

/** The checks of RFC 008 that are met, that are not, and how many need more than a validation has; then the criteria. */
function conclusion({ rfc008, target, passed, mode, standard_profile, summary }: ValidationReport): string {
  const named = (status: string) =>
    rfc008.filter((check) => check.status === status).map(({ check_id }) => check_id);
  const [met, failed, skipped] = ['pass', 'fail', 'skip'].map(named);
  const advised = summary.total_count - summary.required_total_count;
  const advisedPassed = summary.passed_count - summary.required_passed_count;
  const criteria = [
    `${passed ? 'valid' : 'not valid'} (${standard_profile}, ${mode} mode):`,
    `${summary.required_passed_count} of ${summary.required_total_count} required criteria (✗ where not),`,
    `${advisedPassed} of ${advised} advised ones (! where not);`,
    `${summary.not_applicable.length} do not apply (-)`,
  ];
  return [
    `\nOpenEnv RFC 008: ${met.length} of ${rfc008.length} local checks pass: ${met.join(', ')}`,
    ...(failed.length > 0 ? [`  not met: ${failed.join(', ')}`] : []),
    `  ${skipped.length} are not judged: they need the package, a sandbox or an oracle (--json names them)`,
    `${target}: ${criteria.join(' ')}`,
  ].join('\n');
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
function criterionLines(criterion: ValidationReport['criteria'][number]): string {
  const { passed, details, expected, actual } = criterion;
  const mark = passed === null ? '-' : passed ? '✓' : criterion.required ? '✗' : '!';
  const lines = [`${mark} ${criterion.id.padEnd(34)}${criterion.description}`];
  if (!passed && details) lines.push(`    ${details}`);
  if (passed === false && expected !== undefined)
    lines.push(`    expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
  return lines.join('\n');
}
