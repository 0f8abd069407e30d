import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { type Launch, TuningError, vllmDefaults } from '@servegym/operators';
import {
  allTokens,
  calibrateServer,
  compareLoad,
  confirmingLoads,
  type LoadComparison,
  type ServerCalibration,
  ServerClient,
  type ServerFacts,
  type ToldFacts,
  traceProbe,
} from '@servegym/operators/measure-server';
import { snakeCase } from '@servegym/operators/report';
import { estimatedProfile, type MeasuredLoad, measuredLoad } from '@servegym/profiles';
import { counted, type EngineProfile, scaleRate, takeRequests } from '@servegym/simulator';
import { deploymentOptions, readDeployment, readLaunchText } from '../arguments/deployment.ts';
import { above, whole } from '../arguments/options.ts';
import { openTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand, flagOf, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError, InterruptedError, invalidFile, untilInterrupted } from '../failure.ts';
import { readGpu, readInputFile, readModel, readProfile, replaceFile, writeOutputFile } from '../files.ts';
import { printResult, table } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import type { Making } from './make.ts';

/** What making and confirming a profile ask of a running server. */
export const serverOptions = {
  deployment: {
    value: '<line|file>',
    help: 'how it is or was served: a `vllm serve` or SGLang line, or bare flags: "-tp 2 --max-num-seqs 64"',
  },
  apiKey: { value: '<text>', env: 'OPENAI_API_KEY', help: 'key of the API' },
  servedModelName: { value: '<name>', help: 'model to ask for (default: the first that it lists)' },
  minutes: above('<n>', 0, 1440, 'how long the loads may take'),
  usdPerMillionTokens: above('<usd>', 0, 10_000, 'price, to say what the load costs'),
  yes: { help: 'do not ask before loads are sent' },
} as const satisfies OptionTable;

const BLOCK_TOKENS = 16;
/** Limits of servers that say nothing, and vLLM's defaults on a GPU of less than 70 GiB. */
const ASSUMED = { maxModelLen: 4096, maxNumSeqs: 256, maxNumBatchedTokens: 2048 };

/** Calibrates a running server. @throws InterruptedError after Ctrl-C, with what was measured kept in a file. */
export async function calibrateRunningServer(url: string, options: Making): Promise<ServerCalibration> {
  const { output, settings } = options;
  if (output === undefined)
    throw new InputError(
      'a running server needs --output: the profile, and beside it the loads that were measured',
    );
  const loadsFile = `${output.replace(/\.json$/, '')}.loads.json`;
  const measured = options.resume ? await readLoads(loadsFile) : [];
  if (!options.resume && existsSync(loadsFile))
    console.error(
      `note: ${loadsFile} has loads of an earlier run; --resume goes on with them, this one begins anew`,
    );
  const loads = [...measured];
  const kept = () =>
    loads.length === 0
      ? 'nothing was measured yet'
      : `${counted(loads.length, 'load')} kept in ${loadsFile}: add --resume to go on`;
  const message = () => `interrupted: ${kept()}`;
  const calibrating = withServer(
    url,
    { ...options, timeoutS: 120, message },
    async (client, show, signal) => {
      const told = await client.connect();
      const start = await startProfile(options);
      const facts = completeFacts(told, settings, start);
      const { minutes, mostTokens } = options;
      await allow(facts, `loads up to saturation for about ${minutes} minutes: at most`, mostTokens, options);
      const startedMs = performance.now();
      const elapsed = () => (performance.now() - startedMs) / 60_000;
      return calibrateServer({
        ...{ facts, start, minutes, mostTokens, measured, elapsed, apiServerCount: settings.apiServerCount },
        isBudgetAssumed: (told.maxNumBatchedTokens ?? settings.maxNumBatchedTokens) === undefined,
        measure(probe) {
          const passed = elapsed();
          show(`${passed.toFixed(1)} of ${minutes} min: ${probe.name}`, Math.min(1, passed / minutes));
          return client.measure(probe, signal);
        },
        onLoad(load) {
          loads.push(load);
          // A load takes minutes of a GPU: what is measured outlasts a crash.
          replaceFile(loadsFile, `${JSON.stringify(loads)}\n`);
        },
        source:
          options.source ??
          `${facts.engine.name} ${facts.engine.version} that serves ${facts.model}, ${loads.length === 0 ? '' : 'resumed, '}measured over its API`,
        command: `servegym profile make ${url} --minutes ${minutes} --output ${basename(output)}`,
      });
    },
  );
  return calibrating.catch((error) => {
    const isShort = error instanceof TuningError && loads.length > 0;
    throw isShort ? new TuningError(error.code, `${error.message}. ${kept()}`) : error;
  });
}

/**
 * Measures a running server until Ctrl-C.
 * @param options.timeoutS time for an answer
 * @param options.message of the interruption
 * @throws InterruptedError
 */
async function withServer<Result>(
  url: string,
  options: Pick<Making, 'apiKey' | 'servedModelName'> & { timeoutS: number; message?: () => string },
  use: (client: ServerClient, show: ProgressDisplay['show'], signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const client = new ServerClient({ ...options, url, model: options.servedModelName });
  const progress = new ProgressDisplay();
  const { signal, close } = untilInterrupted(options.message);
  try {
    return await use(client, progress.show.bind(progress), signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    progress.end();
    close();
    client.close();
  }
}

/** Report on the profile of a running server, below the table of its loads. */
export function trustText({ heldOut, findings, trust }: ServerCalibration): string {
  const compared = heldOut === null ? [] : ['', comparisonText([heldOut])];
  return ['', ...findings, ...compared, '', trust].join('\n');
}

const FIGURES = [
  ['TTFT mean', 'ttft', 'mean'],
  ['TTFT p99', 'ttft', 'p99'],
  ['TPOT mean', 'tpot', 'mean'],
  ['E2E mean', 'e2e', 'mean'],
  ['E2E p99', 'e2e', 'p99'],
] as const;

function comparisonText(loads: readonly LoadComparison[]): string {
  const rows = loads.flatMap(({ name, requests, measuredMs, predictedMs, errors }) =>
    FIGURES.map(([figure, what, of], i) => ({
      ...{ load: i === 0 ? name : '', requests: i === 0 ? String(requests) : '', figure },
      ...{ measured: measuredMs[what][of], predicted: predictedMs[what][of], error: errors[what][of] },
    })),
  );
  return table(rows, [
    ['load', ({ load }) => load],
    ['requests', ({ requests }) => requests],
    ['figure', ({ figure }) => figure],
    ['measured, ms', ({ measured }) => measured.toFixed(1)],
    ['predicted, ms', ({ predicted }) => predicted.toFixed(1)],
    ['error', ({ error }) => `${error < 0 ? '' : '+'}${error.toFixed(1)} %`],
  ]).join('\n');
}

/**
 * Facts from the server, options, and, for what neither says, an assumption: vLLM's defaults on the GPU of a profile, where
 * there is one.
 */
function completeFacts(told: ToldFacts, settings: Launch['settings'], profile: EngineProfile | undefined) {
  const { model, engine = { name: 'unknown', version: 'unknown' }, blockTokens = BLOCK_TOKENS } = told;
  const isVllm = profile !== undefined && engine.name !== 'SGLang';
  const limits = { ...ASSUMED, ...(isVllm && vllmDefaults(profile)) };
  const notes: string[] = [];
  for (const name of ['maxModelLen', 'maxNumSeqs', 'maxNumBatchedTokens'] as const) {
    const known = settings[name] ?? told[name];
    if (known === undefined) notes.push(`${flagOf(name)} ${limits[name]}`);
    else limits[name] = known;
  }
  const { maxModelLen, maxNumSeqs, maxNumBatchedTokens } = limits;
  const enough = Math.ceil((maxNumSeqs * maxModelLen) / blockTokens);
  const known = settings.kvBlocks ?? told.kvBlocks;
  if (known === undefined) notes.push(`--num-gpu-blocks-override ${enough} (a pool that is never full)`);
  const kvBlocks = known ?? enough;
  console.error(
    `${engine.name} ${engine.version} serves ${model}: context ${maxModelLen}, ${maxNumSeqs} sequences, ${maxNumBatchedTokens} tokens an iteration, ${kvBlocks} KV blocks of ${blockTokens}`,
  );
  if (notes.length > 0)
    console.error(
      `The server does not tell all of that. Taken: ${notes.join(', ')}. Give the flags in --deployment where this is wrong.`,
    );
  return { maxModelLen, maxNumSeqs, maxNumBatchedTokens, model, engine, kvBlocks, blockTokens };
}

/** Asks whether the load may be sent. @throws InputError when it may not. */
async function allow(
  facts: ServerFacts,
  loads: string,
  tokens: number,
  { usdPerMillionTokens: price, yes }: Pick<Making, 'usdPerMillionTokens' | 'yes'>,
): Promise<void> {
  const cost =
    price === undefined
      ? 'Where tokens are billed, that is what it costs: give --usd-per-million-tokens to see it.'
      : `At ${price} USD a million they cost at most ${((tokens * price) / 1e6).toFixed(2)} USD.`;
  console.error(
    `It sends ${loads} ${tokens.toLocaleString('en-US')} tokens, prompts and outputs together. ${cost} Others who use ${facts.model} wait longer meanwhile.`,
  );
  if (yes) return;
  if (process.stdin.isTTY) {
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    const answer = await lines.question('Go on? [y/N] ').finally(() => lines.close());
    if (/^y(es)?$/i.test(answer.trim())) return;
  }
  throw new InputError(
    process.stdin.isTTY
      ? 'the load was not allowed, and nothing was sent but one short request'
      : 'there is no terminal to ask on: add --yes to allow the load',
    { code: 'NOT_ALLOWED' },
  );
}

async function startProfile({ start, gpu, model, gpus }: Making): Promise<EngineProfile | undefined> {
  if (start !== undefined) return readProfile(start);
  if (gpu === undefined && model === undefined) return undefined;
  if (gpu === undefined || model === undefined)
    throw new InputError(
      '--gpu and --model go together; without both, the fit starts from the measurements alone',
    );
  return estimatedProfile(await readGpu(gpu), await readModel(model), gpus);
}

async function readLoads(file: string): Promise<MeasuredLoad[]> {
  const text = await readInputFile(file);
  try {
    const loads = JSON.parse(text) as readonly MeasuredLoad[];
    return loads.map(({ source, requests, failed }) => measuredLoad(source, requests, failed));
  } catch (error) {
    throw invalidFile(`${file}: expected the loads of an earlier run, got ${(error as Error).message}`);
  }
}

const confirmOptions = {
  profile: { ...deploymentOptions.profile, required: true, help: 'engine profile of the server' },
  ...serverOptions,
  requests: whole('<n>', 2, 1_000_000, 'requests of the traffic to send', 200),
  rateScale: trafficOptions.rateScale,
  seed: trafficOptions.seed,
  output: { value: '<file.jsonl>', writes: true, help: 'write the measured requests, for `diff`' },
  minutes: { ...serverOptions.minutes, default: 2, help: 'without a traffic: how long the loads may take' },
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

type Values = OptionValues<typeof confirmOptions> & {
  readonly server: string;
  readonly traffic: ReturnType<typeof trafficWord.traffic.parse> | undefined;
};

export const confirmCommand = () =>
  defineCommand({
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

async function confirm({ server: url, traffic, ...options }: Values): Promise<void> {
  const settings = (await readLaunchText(options.deployment))?.settings ?? {};
  const { profile } = await readDeployment(options.deployment, { profile: options.profile });
  const opened = traffic && (await openTraffic(traffic, { ...options, quiet: true }));
  const trace = opened && scaleRate(takeRequests(opened.trace, options.requests), options.rateScale);
  const compared: LoadComparison[] = [];
  const measured: MeasuredLoad[] = [];
  const confirming = withServer(url, { ...options, timeoutS: 300 }, async (client, show, signal) => {
    const facts = completeFacts(await client.connect(), settings, profile);
    const probes =
      trace === undefined
        ? confirmingLoads(profile, facts, 12 * options.minutes)
        : [traceProbe(existsSync(trace.source) ? basename(trace.source) : trace.source, trace)];
    const requests = probes.flatMap((probe) => probe.requests);
    const loads = `${counted(requests.length, 'request')} in ${counted(probes.length, 'load')}:`;
    await allow(facts, loads, allTokens({ requests }), options);
    for (const [i, probe] of probes.entries()) {
      show(`load ${i + 1} of ${probes.length}: ${probe.name}`, i / probes.length);
      const load = await client.measure(probe, signal);
      measured.push(load);
      compared.push(compareLoad(load, profile, facts));
    }
  });
  await confirming.catch((error) => {
    const isShown = error instanceof InterruptedError && compared.length > 0 && !options.json;
    if (isShown) console.log(comparisonText(compared));
    throw error;
  });
  if (options.output !== undefined) await writeOutputFile(options.output, requestLines(measured));
  printResult(options.json, { loads: compared }, { text: ({ loads }) => comparisonText(loads) });
}

/** Measured requests as `diff` and `profile make` read them. */
const requestLines = (loads: readonly MeasuredLoad[]) =>
  loads.flatMap(({ requests }) =>
    requests.map(({ arrivalMs, inputTokens, outputTokens, ttftMs, e2eMs }) => {
      const request = snakeCase({ arrivalMs, inputTokens, outputTokens, ttftMs, e2eMs });
      return `${JSON.stringify(request)}\n`;
    }),
  );
