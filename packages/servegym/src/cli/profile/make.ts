import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Launch } from '@servegym/operators';
import {
  calibrateBench,
  calibrateKernels,
  calibrateStaticBatches,
  estimatedProfile,
  findGpu,
  findModel,
  type Gpu,
  parseBenchResult,
  parseKernelTables,
  parseStaticBatches,
  type ServedModel,
  vllmConstants,
} from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { readLaunchText } from '../arguments/deployment.ts';
import { readGpu, readModel } from '../arguments/hardware.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { readInputFile, readProfile } from '../arguments/read-input-file.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../input-error.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';
import {
  benchCalibrationJson,
  benchCalibrationTable,
  calibrationJson,
  calibrationTable,
  kernelCalibrationTable,
} from './calibration-report.ts';
import { fromTables } from './from-tables.ts';
import { currentCommand, profileSheet } from './profiles-report.ts';
import { calibrateRunningServer, trustTable } from './running-server.ts';

type LaunchSettings = Launch['settings'];

const KINDS = ['server', 'bench', 'static-batch', 'kernels', 'tables', 'estimate'] as const;
type Kind = (typeof KINDS)[number];

const makeOptions = {
  kind: {
    value: '<kind>',
    choices: KINDS,
    help: 'what the sources are, where it is not seen',
  },
  gpu: { value: '<name|file.json>', help: 'GPU, as `profile list` names them, or a description of yours' },
  model: {
    value: '<name|file.json>',
    help: 'model, or a config.json of Hugging Face (default: that of the line in --deployment)',
  },
  deployment: {
    value: '<line|file>',
    help: 'how it is or was served: a `vllm serve` or SGLang line, or bare flags: "-tp 2 --max-num-seqs 64"',
  },
  start: { value: '<name|file.json>', help: 'profile to start from (default: the estimated one)' },
  engine: {
    value: '<name>',
    default: 'vLLM',
    help: 'engine, as the file calls it; of tables such as vllm-0.24 or sglang',
  },
  engineVersion: {
    value: '<version>',
    parse: vllmVersion,
    conflicts: ['start'],
    help: 'version of vLLM that is estimated, such as 0.6 (default: the newest)',
  },
  memoryOverhead: {
    value: '<GiB>',
    parse: numberAbove(0, 1000),
    help: 'memory of a GPU for activations and CUDA graphs (default: 1.2)',
  },
  source: { value: '<text>', help: 'where the measurements come from (default: the name of the file)' },
  output: { value: '<file.json>', help: 'write the profile to this file' },
  json: { help: 'print one JSON object' },
  apiKey: { value: '<text>', env: 'OPENAI_API_KEY', help: 'key of the API', group: 'A running server:' },
  servedModelName: { value: '<name>', help: 'model to ask for (default: the first that it lists)' },
  minutes: { value: '<n>', default: 5, parse: numberAbove(0, 1440), help: 'how long it may take' },
  mostTokens: {
    value: '<n>',
    default: 1_000_000,
    parse: wholeNumber(1, 1_000_000_000),
    help: 'tokens that it may send and ask for',
  },
  usdPerMillionTokens: {
    value: '<usd>',
    parse: numberAbove(0, 10_000),
    help: 'price, to say what the load costs',
  },
  yes: { help: 'do not ask before loads are sent' },
  resume: { help: 'go on with the loads that an interrupted run has kept' },
} as const satisfies OptionTable;

type MakeOptions = OptionValues<typeof makeOptions>;
/** What is made, from what: the options, and the settings of the server that was measured. */
type Making = MakeOptions & {
  readonly settings: LaunchSettings;
  /** GPUs of the tensor-parallel group; of tables all of the engine. */
  readonly gpus: number;
};

/** Result of a calibration: the profile, and the report on it in both forms. */
interface Made {
  readonly profile: EngineProfile;
  readonly json: unknown;
  readonly table: string;
}

/** `servegym profile make`: an engine profile from measurements, or from data sheets alone. */
export function makeCommand() {
  return defineCommand({
    name: 'make',
    description: 'make an engine profile from a running server, from measurements, or from data sheets',
    words: {
      sources: {
        value: '[sources...]',
        help: 'URL of a server; results of load generators; latencies of whole batches (.csv); a folder of kernel times; none: an estimate',
      },
    },
    options: makeOptions,
    after: `Examples (docs/engine-profiles.md):
  servegym profile make http://gpu:8000/v1 --deployment '--max-num-seqs 256' --output mine.json
  servegym profile make rate-1.json rate-8.json --gpu h100-80gb --model llama-3-8b --output mine.json
  servegym profile make aiconfigurator_core --gpu h200-141gb --model qwen3-235b-a22b --deployment '-tp 4'`,
    async action({ sources, ...options }) {
      const { output } = options;
      await requireWritable(output);
      const { profile, json, table } = await made(sources, await making(options));
      if (output !== undefined) await writeOutputFile(output, [`${JSON.stringify(profile, null, 2)}\n`]);
      console.log(options.json ? JSON.stringify(json, null, 2) : table);
      if (output !== undefined && !options.json) console.log(`\nwrote ${output}`);
    },
  });
}

async function making(options: MakeOptions): Promise<Making> {
  const launch = await readLaunchText(options.deployment);
  const settings = launch?.settings ?? {};
  const { tensorParallel: tensor = 1, dataParallel: data = 1, pipelineParallel: pipeline = 1 } = settings;
  if (launch !== undefined) for (const flag of launch.notSimulated) console.error(`not read: ${flag}`);
  return {
    ...options,
    model: options.model ?? (options.start === undefined ? launch?.model : undefined) ?? undefined,
    settings,
    gpus: tensor * data * pipeline,
  };
}

/**
 * The profile that a command line makes again which a profile names.
 *
 * @param line `servegym profile make ...`, or as it was before; a `"..."` is one word
 * @param locate Path of a file or folder, by the name that the command gives it
 */
export async function madeBy(line: string, locate: (name: string) => string): Promise<EngineProfile> {
  const words = [...currentCommand(line).matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? plain,
  );
  let asked: Promise<Made> | undefined;
  const command = defineCommand({
    ...{ name: 'make', description: '', words: { sources: { value: '[sources...]', help: '' } } },
    options: makeOptions,
    async action({ sources, ...options }) {
      asked = making(options).then((all) => made(sources.map(locate), all));
      await asked;
    },
  });
  await command.parseAsync(words.slice(3), { from: 'user' });
  return { ...(await asked!).profile };
}

/** What the sources are. @throws InputError when they are nothing that is known */
async function kindOf([first]: readonly string[]): Promise<Kind> {
  if (first === undefined) return 'estimate';
  if (/^https?:\/\//.test(first)) return 'server';
  if (existsSync(first) && statSync(first).isDirectory())
    return existsSync(join(first, 'dense.csv')) ? 'kernels' : 'tables';
  return first.endsWith('.csv') ? 'static-batch' : 'bench';
}

async function made(sources: readonly string[], options: Making): Promise<Made> {
  const { kind = await kindOf(sources) } = options;
  const [first] = sources;
  if ((first === undefined) !== (kind === 'estimate'))
    throw new InputError(
      kind === 'estimate'
        ? `an estimate has no sources: leave out ${first}`
        : `--kind ${kind}: expected a source`,
    );
  if (sources.length > 1 && kind !== 'bench')
    throw new InputError(`--kind ${kind}: expected one source, got ${sources.join(', ')}`);
  refuseIdle(kind, options);
  switch (kind) {
    case 'server': {
      const calibrated = await calibrateRunningServer(first, options);
      const { calibration, profile, heldOut, findings, trust } = calibrated;
      return {
        profile,
        json: {
          ...benchCalibrationJson(calibration),
          ...{ relative_spread: calibration.spread, held_out: heldOut, untold_settings: findings, trust },
        },
        table: `${benchCalibrationTable(calibration)}\n${trustTable(calibrated)}`,
      };
    }
    case 'bench':
      return fromBench(options, sources);
    case 'static-batch':
      return fromStaticBatches(options, first);
    case 'kernels':
      return fromKernels(options, first);
    case 'tables': {
      const { gpu, model } = await hardware(options);
      return fromTables(first, options, gpu, model, onCommandLine(options.model!, findModel));
    }
    case 'estimate': {
      const profile = await estimatedStart(options);
      return { profile, json: { profile }, table: profileSheet(profile) };
    }
  }
}

/** Options that only some kinds of sources take. */
const TAKEN: readonly (readonly [keyof Making & string, readonly Kind[]])[] = [
  ['start', ['bench', 'server']],
  ['engineVersion', ['bench', 'estimate']],
  ['memoryOverhead', ['static-batch', 'kernels', 'tables']],
  ['source', ['server', 'bench', 'static-batch', 'kernels', 'tables']],
];

/** @throws InputError for an option that changes nothing */
function refuseIdle(kind: Kind, options: Making): void {
  for (const [key, kinds] of TAKEN) {
    if (options[key] === undefined || kinds.includes(kind)) continue;
    const flag = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new InputError(`--${flag} cannot be used with sources of the kind ${kind}`);
  }
  if (kind === 'kernels' && options.gpus !== 1)
    throw new InputError('kernel times are of one GPU: leave out -tp in --deployment');
}

/** GPU and model that a profile is made for. @throws InputError when one is not named. */
async function hardware({ gpu, model }: Making): Promise<{ gpu: Gpu; model: ServedModel }> {
  if (gpu === undefined) throw new InputError('--gpu is missing: which GPU was measured?');
  if (model === undefined) throw new InputError('--model is missing: which model was served?');
  return { gpu: await readGpu(gpu), model: await readModel(model) };
}

/** GPU or model as a command names it that makes a profile again: its id, or the file. */
function onCommandLine(nameOrFile: string, find: (name: string) => { readonly id: string }): string {
  if (!nameOrFile.endsWith('.json')) return find(nameOrFile).id;
  // The folder of a config.json names the model.
  const file = basename(nameOrFile);
  return file === 'config.json' ? join(basename(dirname(nameOrFile)), file) : file;
}

async function fromBench(options: Making, files: readonly string[]): Promise<Made> {
  const { start, settings } = options;
  const { weights = 'FP16', maxNumSeqs, maxNumBatchedTokens, kvBlocks } = settings;
  if (start !== undefined && (options.gpu !== undefined || options.model !== undefined)) {
    throw new InputError('--start names GPU and model already: leave out --gpu and --model');
  }
  const startProfile = start === undefined ? await estimatedStart(options) : await readProfile(start);
  const texts = await Promise.all(files.map(readInputFile));
  const loads = texts.flatMap((text, i) => parseBenchResult(text, basename(files[i])));
  const calibration = calibrateBench(loads, {
    start: startProfile,
    weights,
    maxNumSeqs,
    maxNumBatchedTokens,
    kvBlocks,
    source: options.source ?? files.map((file) => basename(file)).join(', '),
    command: benchCommandLine(options, files),
  });
  const { profile } = calibration;
  return { profile, json: benchCalibrationJson(calibration), table: benchCalibrationTable(calibration) };
}

async function estimatedStart(options: Making): Promise<EngineProfile> {
  const { gpu, model } = await hardware(options);
  const { gpus, settings, engineVersion } = options;
  const kvCache = settings.fp8KvCache ? 'FP8' : 'FP16';
  if (engineVersion === undefined) return estimatedProfile(gpu, model, gpus, undefined, kvCache);
  const profile = estimatedProfile(gpu, model, gpus, vllmConstants(engineVersion), kvCache);
  return { ...profile, engine: { ...profile.engine, version: engineVersion } };
}

function vllmVersion(text: string): string {
  if (/^\d+\.\d+(\.\w+)*$/.test(text)) return text;
  throw new InvalidArgumentError(`Expected a version of vLLM, such as 0.6 or 0.15.1, got \`${text}\`.`);
}

function benchCommandLine(options: Making, files: readonly string[]): string {
  const { start, gpu, model, deployment, source, engineVersion } = options;
  return commandText([
    ...files.map((file) => basename(file)),
    ...(start === undefined
      ? [`--gpu ${onCommandLine(gpu!, findGpu)}`, `--model ${onCommandLine(model!, findModel)}`]
      : [`--start ${basename(start)}`]),
    named('--deployment', deployment),
    named('--engine-version', engineVersion),
    named('--source', source),
  ]);
}

async function fromStaticBatches(options: Making, file: string): Promise<Made> {
  const { gpu, model } = await hardware(options);
  const rows = parseStaticBatches(await readInputFile(file), file);
  const calibration = calibrateStaticBatches(rows, {
    gpu,
    model,
    count: options.gpus,
    engine: options.engine,
    memoryOverheadGiB: options.memoryOverhead,
    source: options.source ?? basename(file),
    command: commandLine(options, basename(file)),
  });
  const { profile } = calibration;
  return { profile, json: calibrationJson(calibration), table: calibrationTable(calibration) };
}

async function fromKernels(options: Making, folder: string): Promise<Made> {
  const [dense, perSequence, attention] = await Promise.all(
    ['dense.csv', 'per_sequence.csv', 'attention.csv'].map((name) => readInputFile(join(folder, name))),
  );
  const tables = parseKernelTables(
    { 'dense.csv': dense!, 'per_sequence.csv': perSequence!, 'attention.csv': attention! },
    folder,
  );
  const { gpu, model } = await hardware(options);
  const calibration = calibrateKernels(tables, {
    gpu,
    model,
    memoryOverheadGiB: options.memoryOverhead,
    source: options.source ?? basename(folder),
    command: commandLine(options, basename(folder)),
  });
  const { profile } = calibration;
  return { profile, json: calibration, table: kernelCalibrationTable(calibration) };
}

/** The command that makes the profile again, wherever the file lies. */
function commandLine(
  { gpu, model, deployment, engine, memoryOverhead, source }: Making,
  from: string,
): string {
  return commandText([
    from,
    `--gpu ${onCommandLine(gpu!, findGpu)}`,
    `--model ${onCommandLine(model!, findModel)}`,
    named('--deployment', deployment),
    engine === 'vLLM' ? undefined : `--engine ${engine}`,
    memoryOverhead === undefined ? undefined : `--memory-overhead ${memoryOverhead}`,
    named('--source', source),
  ]);
}

function commandText(parts: readonly (string | undefined)[]): string {
  return ['servegym profile make', ...parts.filter((part) => part !== undefined)].join(' ');
}

function named(flag: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `${flag} ${JSON.stringify(value)}`;
}
