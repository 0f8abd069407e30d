import { socketUrl } from '@servegym/openenv/client';
import { Command, Option } from 'commander';
import { jsonObject, numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { serverAddress } from '../arguments/server-options.ts';
import { showProgress } from '../output/progress.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import { chooseAction } from './server/choose-action.ts';
import { concurrencyPlotSvg } from './server/concurrency-plot.ts';
import { concurrencyJson, concurrencyTable } from './server/concurrency-report.ts';
import { requireOpenFiles } from './server/open-file-limit.ts';
import { MOST_SESSIONS, requestGrid } from './server/request-grid.ts';
import { type BatchResult, runBatch } from './server/session-batch.ts';

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
export function benchServerCommand(): Command {
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
    .addOption(
      new Option('--action <json>', 'the action of each step (default: made from the schema)').argParser(
        jsonObject,
      ),
    )
    .addOption(
      new Option('--steps <n>', 'steps of each session').default(1).argParser(wholeNumber(1, 1_000_000)),
    )
    .addOption(
      new Option('--ramp <seconds>', 'spread the starts of a batch over this time')
        .default(0)
        .argParser(numberFrom(0, 3600)),
    )
    .addOption(
      new Option('--timeout <seconds>', 'a session that takes longer has failed')
        .default(60)
        .argParser(numberAbove(0, 3600)),
    )
    .option('--token <text>', 'sent as `authorization: Bearer`')
    .option('--plot <file.svg>', 'draw the result')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
A request is a session that connects, resets and steps. The sessions of a batch stay open until all have been answered,
so that the servers really hold them at once. \`servegym serve --env benchmark\` is an environment to measure with.`,
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
  console.log(json ? JSON.stringify(concurrencyJson(run), null, 2) : concurrencyTable(run));
  if (plot !== undefined && !json) console.log(`\nwrote ${plot}`);
}
