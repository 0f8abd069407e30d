import { basename } from 'node:path';
import { compareLoad, confirmingLoads, type LoadComparison, traceProbe } from '@servegym/operators/twin';
import { scaleRate, takeRequests } from '@servegym/simulator';
import { deploymentOptions, readDeployment, readLaunchText } from '../arguments/deployment.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { openTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InterruptedError } from '../failure.ts';
import { printResult } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { comparisonText, completeFacts, openServer } from './running-server.ts';

const TIMEOUT_S = 300;

const confirmOptions = {
  profile: { ...deploymentOptions.profile, required: true, help: 'engine profile of the server' },
  deployment: {
    value: '<line|file>',
    help: 'how the server was started, as far as it does not tell: "--max-num-seqs 64"',
  },
  apiKey: { value: '<text>', env: 'OPENAI_API_KEY', help: 'key of the API' },
  servedModelName: { value: '<name>', help: 'model to ask for (default: the first that the server lists)' },
  requests: {
    value: '<n>',
    default: 200,
    parse: wholeNumber(2, 1_000_000),
    help: 'requests of the traffic to send',
  },
  rateScale: trafficOptions.rateScale,
  seed: trafficOptions.seed,
  seconds: {
    value: '<n>',
    default: 20,
    parse: numberAbove(0, 3600),
    help: 'without a traffic: length of each load',
  },
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

type Values = OptionValues<typeof confirmOptions> & {
  readonly server: string;
  readonly traffic: ReturnType<typeof trafficWord.traffic.parse> | undefined;
};

/** `servegym profile confirm`: traffic on a running server, beside what a profile predicts for it. */
export function confirmCommand() {
  return defineCommand({
    name: 'confirm',
    description: 'send traffic to a running server, and compare it with the prediction of a profile',
    words: {
      server: { value: '<url>', help: 'server of the OpenAI API that streams, such as http://gpu:8000/v1' },
      traffic: {
        ...trafficWord.traffic,
        value: '[traffic]',
        help: 'a file of requests, or drawn, as `simulate` takes it (default: five open loads, from a fifth of saturation to all of it)',
      },
    },
    options: confirmOptions,
    after: `Examples:
  servegym profile confirm http://gpu:8000/v1 --profile mine.json --deployment '--max-num-seqs 64'
  servegym profile confirm http://gpu:8000/v1 trace.csv --profile mine.json --requests 300`,
    action: confirm,
  });
}

async function confirm({ server: url, traffic, ...options }: Values): Promise<void> {
  const settings = (await readLaunchText(options.deployment))?.settings ?? {};
  const { profile } = await readDeployment(options.deployment, { profile: options.profile });
  const opened = traffic && (await openTraffic(traffic, { ...options, quiet: true }));
  const trace = opened && scaleRate(takeRequests(opened.trace, options.requests), options.rateScale);
  const server = openServer(url, options, TIMEOUT_S);
  const { client } = server;
  const progress = new ProgressDisplay();
  const compared: LoadComparison[] = [];
  try {
    const facts = await completeFacts(await client.connect(), settings, true);
    const probes =
      trace === undefined
        ? confirmingLoads(profile, facts, options.seconds)
        : [traceProbe(basename(trace.source), trace)];
    for (const [i, probe] of probes.entries()) {
      progress.show(`load ${i + 1} of ${probes.length}: ${probe.name}`, i / probes.length);
      compared.push(compareLoad(await client.measure(probe, server.stopped), profile, facts));
    }
  } catch (error) {
    const interrupt = server.interrupt();
    if (interrupt === undefined) throw error;
    progress.end();
    if (compared.length > 0 && !options.json) console.log(comparisonText(compared));
    throw new InterruptedError(interrupt);
  } finally {
    progress.end();
    server.close();
  }
  printResult(options.json, { loads: compared }, { text: ({ loads }) => comparisonText(loads) });
}
