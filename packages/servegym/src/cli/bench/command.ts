import { socketUrl } from '@servegym/openenv/client';
import { Command, InvalidArgumentError, Option } from 'commander';
import { jsonObject, numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { serverAddress } from '../arguments/server-options.ts';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import { chooseAction } from './choose-action.ts';
import { concurrencyPlotSvg } from './concurrency-plot.ts';
import { concurrencyJson, concurrencyTable } from './concurrency-report.ts';
import { type BatchResult, runBatch } from './session-batch.ts';

/** Most sessions at once that one process can be asked for. */
const MOST_SESSIONS = 16_384;
const MOST_BATCHES = 64;
/** Files that a process has open beside its sockets, generously. */
const OTHER_FILES = 64;

/** `servegym bench`: measurements of servers. */
export function benchCommand(): Command {
  return new Command('bench').description('measure servers').addCommand(benchServerCommand());
}

interface BenchServerOptions {
  readonly url: readonly URL[];
  readonly requests: readonly number[];
  readonly wait?: number;
  readonly action?: Record<string, unknown>;
  readonly steps: number;
  readonly ramp: number;
  readonly timeout: number;
  readonly token?: string;
  readonly plot?: string;
  readonly json: boolean;
}

/** `servegym bench server`: how many sessions at once a deployment holds, and how late it answers. */
function benchServerCommand(): Command {
  return new Command('server')
    .description('find out how many sessions at once OpenEnv servers hold, and how late they answer')
    .addOption(
      new Option('--url <address>', 'address of a server; several share the sessions in turn')
        .argParser((text: string, others: readonly URL[] = []) => [...others, serverAddress(text)])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--requests <grid>', `sessions at once, up to ${MOST_SESSIONS}: 1,8,64 or 1..1024`)
        .argParser(requestGrid)
        .default(requestGrid('1..1024'), '1..1024'),
    )
    .addOption(
      new Option('--wait <seconds>', 'how long each step of the `benchmark` environment waits (default: 1)')
        .argParser(numberFrom(0, 3600))
        .conflicts('action'),
    )
    .option('--action <json>', 'the action of each step (default: made from the schema)', jsonObject)
    .option('--steps <n>', 'steps of each session', wholeNumber(1, 1_000_000), 1)
    .option('--ramp <seconds>', 'spread the starts of a batch over this time', numberFrom(0, 3600), 0)
    .option('--timeout <seconds>', 'a session that takes longer has failed', numberAbove(0, 3600), 60)
    .option('--token <text>', 'sent as `authorization: Bearer`')
    .option('--plot <file.svg>', 'draw the result')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
A request is a session that connects, resets and steps. The sessions of a batch stay open until all have been answered,
so the servers hold them all at once. \`servegym serve --env benchmark\` is an environment made for this measurement.`,
    )
    .action(benchServer);
}

async function benchServer(options: BenchServerOptions): Promise<void> {
  const { url: urls, requests, steps, ramp: rampS, json, plot } = options;
  requireOpenFiles(Math.max(...requests));
  const headers: Record<string, string> = options.token ? { authorization: `Bearer ${options.token}` } : {};
  const timeoutMs = 1000 * options.timeout;
  const action = options.action ?? (await chooseAction(urls[0], { waitS: options.wait, timeoutMs, headers }));
  const socketUrls = urls.map((url) => socketUrl(url, 'ws').href);
  const plan = { socketUrls, action, steps, timeoutMs, rampS, headers };

  const batches: BatchResult[] = [];
  for (const [index, sessions] of requests.entries()) {
    showProgress(`${sessions} sessions: batch ${index + 1} of ${requests.length}`);
    batches.push(await runBatch(plan, sessions));
  }
  showProgress('');

  const run = { urls: urls.map((url) => url.href), action, steps, rampS, batches };
  if (plot !== undefined) {
    await writeOutputFile(plot, [concurrencyPlotSvg(`Sessions at once on ${run.urls.join(', ')}`, batches)]);
  }
  printResult(
    json,
    () => concurrencyJson(run),
    () => concurrencyTable(run),
  );
  if (plot !== undefined && !json) console.log(`\nwrote ${plot}`);
}

/**
 * An argument parser for numbers of sessions: `1,8,64`, and `1..1024` for 1, 2, 4 and so on up to 1024, which is always
 * in it.
 */
export function requestGrid(text: string): number[] {
  const grid = text.split(',').flatMap((part) => {
    const [, low, high] = /^(\d+)\.\.(\d+)$/.exec(part.trim()) ?? [];
    if (low === undefined) return [sessions(part.trim(), text)];
    return doubled(sessions(low, text), sessions(high!, text), text);
  });
  if (grid.length > MOST_BATCHES) {
    throw new InvalidArgumentError(`Expected at most ${MOST_BATCHES} numbers, got ${grid.length}.`);
  }
  return grid;
}

function sessions(part: string, text: string): number {
  const count = /^\d+$/.test(part) ? Number(part) : Number.NaN;
  if (count >= 1 && count <= MOST_SESSIONS) return count;
  throw new InvalidArgumentError(
    `Expected numbers of sessions from 1 to ${MOST_SESSIONS}, as \`1,8,64\` or \`1..1024\`, got \`${text}\`.`,
  );
}

function doubled(low: number, high: number, text: string): number[] {
  if (low > high) throw new InvalidArgumentError(`Expected a range to go upwards, got \`${text}\`.`);
  const grid: number[] = [];
  for (let count = low; count < high; count *= 2) grid.push(count);
  return [...grid, high];
}

/** Most files that this process may have open; `null` where the system does not tell. */
export function openFileLimit(): number | null {
  // The types of Node do not know `excludeNetwork` yet.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const excludedNetwork = report.excludeNetwork;
  // Looking up the names of peers would take seconds.
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  report.excludeNetwork = excludedNetwork;
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : null;
}

/** @throws InputError when so many sockets cannot be open at once. */
export function requireOpenFiles(sockets: number, limit = openFileLimit()): void {
  const needed = sockets + OTHER_FILES;
  if (limit === null || limit >= needed) return;
  throw new InputError(
    `${sockets} sessions need ${needed} open files, but this process may have ${limit}. Raise the limit with \`ulimit -n ${needed}\`, or ask for at most ${Math.max(1, limit - OTHER_FILES)} sessions.`,
  );
}
