import { validateServer } from '@servegym/openenv/validate';
import { Command, Option } from 'commander';
import { jsonObject, numberAbove, wholeNumber } from '../arguments/options.ts';
import { serverAddress } from '../arguments/server-options.ts';
import { printResult } from '../output/print-result.ts';
import { criterionLines, validationSummary } from './validation-lines.ts';

interface ValidateOptions {
  readonly url: URL;
  readonly action?: Record<string, unknown>;
  readonly reset: Record<string, unknown>;
  readonly steps: number;
  readonly sessions: number;
  readonly timeout: number;
  readonly token?: string;
  readonly strict: boolean;
  readonly json: boolean;
}

/** `servegym validate`: whether a running server is an OpenEnv server that clients can rely on. */
export function validateCommand(): Command {
  return new Command('validate')
    .description('check any running OpenEnv server')
    .addOption(
      new Option('--url <address>', 'address of the server').argParser(serverAddress).makeOptionMandatory(),
    )
    .option('--action <json>', 'a valid action (default: made from the schema)', jsonObject)
    .addOption(new Option('--reset <json>', 'options of every reset').argParser(jsonObject).default({}, '{}'))
    .option('--steps <n>', 'steps of the episode that is played', wholeNumber(1, 10_000), 3)
    .addOption(
      new Option('--sessions <n>', 'most sessions to open in order to find out what a full server says')
        .default(16)
        .argParser(wholeNumber(1, 1000)),
    )
    .option('--timeout <seconds>', 'how long a reply may take', numberAbove(0, 600), 10)
    .option('--token <text>', 'sent as `authorization: Bearer`')
    .option('--strict', 'count advised criteria as required', false)
    .option('--json', 'print one JSON object, as `openenv validate` does', false)
    .addHelpText(
      'after',
      `
The first six criteria are those of \`openenv validate --url\`. The exit code is 0 when all required ones are met, else 1.
It resets sessions and plays a few steps, so do not point it at an environment whose actions do harm.`,
    )
    .action(validate);
}

async function validate(options: ValidateOptions): Promise<void> {
  const { url: base, action, reset: resetOptions, steps, json, strict, token } = options;
  const failure = json ? null : await connectionFailure(base, 1000 * options.timeout);
  if (failure !== null) {
    console.error(`error: ${base.href} cannot be reached: ${failure}. Start the server, or correct --url.`);
    process.exitCode = 1;
    return;
  }
  const subject = {
    ...{ action, resetOptions, steps },
    timeoutMs: 1000 * options.timeout,
    mostSessions: options.sessions,
    headers: token ? { authorization: `Bearer ${token}` } : ({} as Record<string, string>),
  };
  const report = await validateServer(base, subject, (criterion) => {
    if (!json) console.log(criterionLines(criterion));
  });
  printResult(
    json,
    () => report,
    () => `\n${report.target}: ${validationSummary(report)}`,
  );
  const failures = strict ? report.summary.failed_criteria.length : report.passed ? 0 : 1;
  process.exitCode = failures === 0 ? 0 : 1;
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
