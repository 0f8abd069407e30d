import { basename } from 'node:path';
import { compareLoad, confirmingLoads, type LoadComparison, traceProbe } from '@servegym/operators/twin';
import { scaleRate, takeRequests } from '@servegym/simulator';
import { Command, Option } from 'commander';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { readProfile } from '../arguments/read-input-file.ts';
import { apiServerCountOption, withApiServers } from '../arguments/scheduler-options.ts';
import { addTraceOptions, readTraceArgument, type TraceArguments } from '../arguments/trace-arguments.ts';
import { comparisonRows, completeFacts, type ServerOptions } from '../calibrate/calibrate-server.ts';
import { openServer } from '../calibrate/open-server.ts';
import { InterruptedError } from '../interrupted-error.ts';
import { printResult } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';

interface ConfirmOptions
  extends TraceArguments,
    Pick<
      ServerOptions,
      | 'server'
      | 'apiKey'
      | 'servedModelName'
      | 'maxModelLen'
      | 'maxNumSeqs'
      | 'maxNumBatchedTokens'
      | 'kvBlocks'
      | 'apiServerCount'
    > {
  readonly profile: string;
  readonly requests: number;
  readonly rateScale: number;
  readonly seconds: number;
  readonly json: boolean;
}

const TIMEOUT_S = 300;

/** `servegym confirm`: a trace on a running server, beside what a profile predicts for it. */
export function confirmCommand(): Command {
  const command = new Command('confirm')
    .description('play a trace against a running server, and compare it with the prediction of a profile')
    .argument(
      '[trace]',
      'requests to send, as `simulate` reads them (default: five open loads, from a fifth of saturation to all of it)',
    )
    .requiredOption('--server <url>', 'server of the OpenAI API that streams, such as http://gpu:8000/v1')
    .requiredOption(
      '--profile <name|file.json>',
      'engine profile of the server, such as `calibrate --server` makes',
    )
    .addOption(new Option('--api-key <text>', 'key of the API').env('OPENAI_API_KEY'))
    .option('--served-model-name <name>', 'model to ask for (default: the first that the server lists)')
    .addOption(
      new Option('--requests <n>', 'requests of the trace to send')
        .default(200)
        .argParser(wholeNumber(2, 1_000_000)),
    )
    .addOption(
      new Option('--rate-scale <factor>', 'let the requests of the trace arrive this many times as fast')
        .default(1)
        .argParser(numberAbove(0)),
    )
    .addOption(
      new Option('--seconds <n>', 'without a trace: length of each load')
        .default(20)
        .argParser(numberAbove(0, 3600)),
    );
  for (const [flag, what] of [
    ['--max-num-seqs <n>', 'sequences at once'],
    ['--max-num-batched-tokens <n>', 'token budget of an iteration'],
    ['--kv-blocks <n>', 'KV blocks'],
    ['--max-model-len <n>', 'most tokens of a prompt and its output'],
  ] as const) {
    command.addOption(
      new Option(flag, `${what}, as the server was started`).argParser(wholeNumber(1, 2 ** 30)),
    );
  }
  return addTraceOptions(command.addOption(apiServerCountOption()))
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Examples:
  servegym confirm --server http://gpu:8000/v1 --profile mine.json --max-num-seqs 64
  servegym confirm trace.csv --server http://gpu:8000/v1 --profile mine.json --requests 300`,
    )
    .action(confirm);
}

async function confirm(file: string | undefined, options: ConfirmOptions): Promise<void> {
  const profile = withApiServers(await readProfile(options.profile), options.apiServerCount);
  const trace =
    file === undefined
      ? undefined
      : scaleRate(
          takeRequests((await readTraceArgument(file, options)).trace, options.requests),
          options.rateScale,
        );
  const server = openServer(options, TIMEOUT_S);
  const { client } = server;
  const progress = new ProgressDisplay();
  const compared: LoadComparison[] = [];
  try {
    const facts = await completeFacts(await client.connect(), { ...options, yes: true });
    const probes =
      trace === undefined
        ? confirmingLoads(profile, facts, options.seconds)
        : [traceProbe(basename(file!), trace)];
    for (const [i, probe] of probes.entries()) {
      progress.show(`load ${i + 1} of ${probes.length}: ${probe.name}`, i / probes.length);
      compared.push(compareLoad(await client.measure(probe, server.stopped), profile, facts));
    }
  } catch (error) {
    const interrupt = server.interrupt();
    if (interrupt === undefined) throw error;
    progress.end();
    if (compared.length > 0 && !options.json) console.log(comparisonRows(compared).join('\n'));
    throw new InterruptedError(interrupt);
  } finally {
    progress.end();
    server.close();
  }
  printResult(
    options.json,
    () => ({ loads: compared }),
    () => comparisonRows(compared).join('\n'),
  );
}
