import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { type Launch, TuningError } from '@servegym/operators';
import {
  calibrateServer,
  type LoadComparison,
  type ServerCalibration,
  ServerClient,
  type ServerFacts,
  type ToldFacts,
} from '@servegym/operators/twin';
import { estimatedProfile, type MeasuredLoad, measuredLoad } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { readGpu, readInputFile, readModel, readProfile } from '../arguments/input-files.ts';
import { InputError, type Interrupt, InterruptedError, onInterrupt } from '../failure.ts';
import { table } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import type { Making } from './make.ts';

const TIMEOUT_S = 120;
const BLOCK_TOKENS = 16;
/** Limits of servers that say nothing, and vLLM's defaults. */
const ASSUMED = { maxModelLen: 4096, maxNumSeqs: 256, maxNumBatchedTokens: 2048 };

/** Calibrates a running server. @throws InterruptedError after Ctrl-C, with what was measured kept in a file. */
export async function calibrateRunningServer(url: string, options: Making): Promise<ServerCalibration> {
  const { output, settings, yes } = options;
  if (output === undefined)
    throw new InputError(
      'a running server needs --output: the profile, and beside it the loads that were measured',
    );
  const loadsFile = `${output.replace(/\.json$/, '')}.loads.json`;
  const measured = options.resume ? await readLoads(loadsFile) : [];
  const server = openServer(url, options, TIMEOUT_S);
  const { client } = server;
  const progress = new ProgressDisplay();
  const loads = [...measured];
  try {
    const told = await client.connect();
    const facts = await completeFacts(told, settings, yes);
    await allow(facts, options);
    const startedMs = performance.now();
    const elapsed = () => (performance.now() - startedMs) / 60_000;
    return await calibrateServer({
      facts,
      isBudgetAssumed:
        (told.maxNumBatchedTokens ?? settings.maxNumBatchedTokens) === undefined && !canAsk(yes),
      start: await startProfile(options),
      apiServerCount: settings.apiServerCount,
      minutes: options.minutes,
      mostTokens: options.mostTokens,
      measured,
      measure: (probe) => {
        progress.show(
          `${elapsed().toFixed(1)} of ${options.minutes} min: ${probe.name}`,
          Math.min(1, elapsed() / options.minutes),
        );
        return client.measure(probe, server.stopped);
      },
      elapsed,
      onLoad: (load) => {
        loads.push(load);
      },
      source:
        options.source ??
        `${facts.engine.name} ${facts.engine.version} that serves ${facts.model}, ${loads.length === 0 ? '' : 'resumed, '}measured over its API`,
      command: `servegym profile make ${url} --minutes ${options.minutes} --output ${basename(output)}`,
    });
  } catch (error) {
    const kept =
      loads.length === 0
        ? 'nothing was measured yet'
        : `${loads.length === 1 ? '1 load is' : `${loads.length} loads are`} kept in ${loadsFile}: add --resume to go on`;
    const interrupt = server.interrupt();
    if (interrupt !== undefined) throw new InterruptedError(interrupt, `interrupted: ${kept}`);
    if (error instanceof TuningError && loads.length > 0)
      throw new TuningError(error.code, `${error.message}. ${kept}`);
    throw error;
  } finally {
    progress.end();
    server.close();
    if (loads.length > 0) await writeOutputFile(loadsFile, [`${JSON.stringify(loads)}\n`]);
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

/** Measured and predicted figures of loads. */
export function comparisonText(loads: readonly LoadComparison[]): string {
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

/** Facts from the server, options, and, for what neither says, a question or an assumption. */
export async function completeFacts(
  told: ToldFacts,
  settings: Launch['settings'],
  yes: boolean,
): Promise<ServerFacts> {
  const limits = { ...ASSUMED };
  const notes: string[] = [];
  for (const [name, flag] of [
    ['maxModelLen', '--max-model-len'],
    ['maxNumSeqs', '--max-num-seqs'],
    ['maxNumBatchedTokens', '--max-num-batched-tokens'],
  ] as const) {
    const known = settings[name] ?? told[name];
    limits[name] = known ?? (await ask(flag, ASSUMED[name], yes));
    if (known === undefined) notes.push(`${flag} ${limits[name]}`);
  }
  const blockTokens = told.blockTokens ?? BLOCK_TOKENS;
  const enough = Math.ceil((limits.maxNumSeqs * limits.maxModelLen) / blockTokens);
  const kvBlocks = settings.kvBlocks ?? told.kvBlocks;
  if (kvBlocks === undefined) notes.push(`--num-gpu-blocks-override ${enough} (a pool that is never full)`);
  const facts: ServerFacts = {
    ...limits,
    model: told.model,
    engine: told.engine ?? { name: 'unknown', version: 'unknown' },
    kvBlocks: kvBlocks ?? enough,
    blockTokens,
  };
  console.error(
    `${facts.engine.name} ${facts.engine.version} serves ${facts.model}: context ${facts.maxModelLen}, ${facts.maxNumSeqs} sequences, ${facts.maxNumBatchedTokens} tokens an iteration, ${facts.kvBlocks} KV blocks of ${blockTokens}`,
  );
  if (notes.length > 0)
    console.error(
      `The server does not tell all of that. Taken: ${notes.join(', ')}. Give the flags in --deployment where this is wrong.`,
    );
  return facts;
}

function canAsk(yes: boolean): boolean {
  return !yes && process.stdin.isTTY;
}

async function ask(flag: string, assumed: number, yes: boolean): Promise<number> {
  if (!canAsk(yes)) return assumed;
  const answer = await question(`The server does not tell its ${flag} [${assumed}]: `);
  const value = answer.trim() === '' ? assumed : Number(answer);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InputError(`expected a whole number from 1 for ${flag}, got ${answer}`);
}

/** Asks whether the load may be sent. @throws InputError when it may not. */
async function allow(facts: ServerFacts, options: Making): Promise<void> {
  const { mostTokens, minutes, usdPerMillionTokens, yes } = options;
  const cost =
    usdPerMillionTokens === undefined
      ? 'Where tokens are billed, that is what it costs: give --usd-per-million-tokens to see it.'
      : `At ${usdPerMillionTokens} USD a million they cost at most ${((mostTokens * usdPerMillionTokens) / 1e6).toFixed(2)} USD.`;
  console.error(
    `It sends loads up to saturation for about ${minutes} minutes: at most ${mostTokens.toLocaleString('en-US')} tokens, prompts and outputs together. ${cost} Others who use ${facts.model} wait longer meanwhile.`,
  );
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new InputError('there is no terminal to ask on: add --yes to allow the load', {
      code: 'NOT_ALLOWED',
    });
  const answer = await question('Go on? [y/N] ');
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new InputError('the load was not allowed, and nothing was sent but one short request', {
      code: 'NOT_ALLOWED',
    });
}

async function question(text: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(text);
  } finally {
    lines.close();
  }
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
    throw new InputError(`${file}: expected the loads of an earlier run, got ${(error as Error).message}`, {
      code: 'INVALID_FILE',
    });
  }
}

/** A running server to measure, until it is closed or Ctrl-C stops the load. */
interface OpenServer {
  readonly client: ServerClient;
  /** Aborted at the first Ctrl-C or SIGTERM. */
  readonly stopped: AbortSignal;
  /** The signal that stopped the load. */
  interrupt(): Interrupt | undefined;
  close(): void;
}

/** Opens a client of the server that the options name, and listens for Ctrl-C. */
export function openServer(
  url: string,
  { apiKey, servedModelName: model }: Pick<Making, 'apiKey' | 'servedModelName'>,
  timeoutS: number,
): OpenServer {
  const client = new ServerClient({ url, apiKey, model, timeoutS });
  const stop = new AbortController();
  let interrupt: Interrupt | undefined;
  const unlisten = onInterrupt((signal) => {
    interrupt = signal;
    stop.abort();
  });
  return {
    client,
    stopped: stop.signal,
    interrupt: () => interrupt,
    close() {
      unlisten();
      client.close();
    },
  };
}
