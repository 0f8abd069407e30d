import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Launch } from '@servegym/operators';
import {
  calibrateBench,
  calibrateStaticBatches,
  estimatedProfile,
  findGpu,
  findModel,
  parseBenchResult,
  parseStaticBatches,
  profileFromTables,
  vllmConstants,
} from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { divisionOf, readLaunchText } from '../arguments/deployment.ts';
import { above, whole } from '../arguments/options.ts';
import { defineCommand, flagOf, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { readGpu, readInputFile, readModel, readProfile, writeJsonFile } from '../files.ts';
import { type Form, printResult, table } from '../output/print-result.ts';
import { benchForm, profileSheet, staticBatchForm } from './profile-report.ts';
import { calibrateRunningServer, serverOptions, trustText } from './running-server.ts';

/** What profiles are made from, with the options that not all of them take. */
const KINDS = {
  server: { make: fromServer, takes: ['start', 'source'] },
  bench: { make: fromBench, takes: ['start', 'engineVersion', 'source'] },
  'static-batch': { make: fromStaticBatches, takes: ['memoryOverhead', 'source'] },
  tables: { make: fromTables, takes: ['memoryOverhead', 'source'] },
  estimate: { make: fromDataSheets, takes: ['engineVersion'] },
} as const;
type Kind = keyof typeof KINDS;

const DEFAULT_ENGINE = 'vLLM';

const makeOptions = {
  kind: {
    value: '<kind>',
    choices: Object.keys(KINDS) as Kind[],
    help: 'what the sources are, where it is not seen',
  },
  gpu: { value: '<name|file.json>', help: 'GPU, as `profile list` names them, or a description of yours' },
  model: {
    value: '<name|file.json>',
    help: 'model, or a config.json of Hugging Face (default: that of the line in --deployment)',
  },
  deployment: serverOptions.deployment,
  start: { value: '<name|file.json>', help: 'profile to start from (default: the estimated one)' },
  engine: {
    value: '<name>',
    default: DEFAULT_ENGINE,
    help: 'engine, as the file calls it; of tables such as vllm-0.24 or sglang',
  },
  engineVersion: {
    value: '<version>',
    parse(text: string): string {
      if (/^\d+\.\d+(\.\w+)*$/.test(text)) return text;
      throw new InvalidArgumentError(`Expected a version of vLLM, such as 0.6 or 0.15.1, got \`${text}\`.`);
    },
    conflicts: ['start'],
    help: 'version of vLLM that is estimated, such as 0.6 (default: the newest)',
  },
  memoryOverhead: above('<GiB>', 0, 1000, 'memory of a GPU for activations and CUDA graphs (default: 1.2)'),
  source: { value: '<text>', help: 'where the measurements come from (default: the name of the file)' },
  output: { value: '<file.json>', writes: true, help: 'write the profile to this file' },
  json: { help: 'print one JSON object' },
  apiKey: { ...serverOptions.apiKey, group: 'A running server:' },
  servedModelName: serverOptions.servedModelName,
  minutes: { ...serverOptions.minutes, default: 5 },
  mostTokens: whole('<n>', 1, 1_000_000_000, 'tokens that it may send and ask for', 1_000_000),
  usdPerMillionTokens: serverOptions.usdPerMillionTokens,
  yes: serverOptions.yes,
  resume: { help: 'go on with the loads that an interrupted run has kept' },
} as const satisfies OptionTable;

type MakeOptions = OptionValues<typeof makeOptions>;
/** What is made, from what: the options, and the settings of the server that was measured. */
export type Making = MakeOptions & {
  readonly settings: Launch['settings'];
  /** GPUs of the tensor-parallel group; of tables all of the engine. */
  readonly gpus: number;
};

interface Made {
  readonly profile: EngineProfile;
  readonly json: unknown;
  readonly text: string;
}

export const makeCommand = () =>
  defineCommand({
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
      const { profile, json, text } = await made(sources, await making(options));
      if (output !== undefined) await writeJsonFile(output, profile);
      printResult(options.json, json, { text: () => text });
      if (output !== undefined && !options.json) console.log(`\nwrote ${output}`);
    },
  });

async function making(options: MakeOptions): Promise<Making> {
  const launch = await readLaunchText(options.deployment);
  const settings = launch?.settings ?? {};
  const { tensorParallel: tensor = 1, dataParallel: data = 1, pipelineParallel: pipeline = 1 } = settings;
  for (const flag of launch?.notSimulated ?? []) console.error(`not read: ${flag}`);
  const { name, shapeOf = name } = (options.start === undefined && launch?.model) || {};
  const { model = shapeOf } = options;
  return { ...options, model, settings, gpus: tensor * data * pipeline };
}

function kindOf([first]: readonly string[]): Kind {
  if (first === undefined) return 'estimate';
  if (/^https?:\/\//.test(first)) return 'server';
  if (existsSync(first) && statSync(first).isDirectory()) return 'tables';
  return first.endsWith('.csv') ? 'static-batch' : 'bench';
}

async function made(sources: readonly string[], options: Making): Promise<Made> {
  const { kind = kindOf(sources) } = options;
  const [first] = sources;
  if ((first === undefined) !== (kind === 'estimate'))
    throw new InputError(
      kind === 'estimate'
        ? `an estimate has no sources: leave out ${first}`
        : `--kind ${kind}: expected a source`,
    );
  if (sources.length > 1 && kind !== 'bench')
    throw new InputError(`--kind ${kind}: expected one source, got ${sources.join(', ')}`);
  const { make, takes } = KINDS[kind];
  for (const key of ['start', 'engineVersion', 'memoryOverhead', 'source'] as const)
    if (options[key] !== undefined && !(takes as readonly string[]).includes(key))
      throw new InputError(`${flagOf(key)} cannot be used with sources of the kind ${kind}`);
  return make(options, sources);
}

async function fromServer(options: Making, [url]: readonly string[]): Promise<Made> {
  const calibrated = await calibrateRunningServer(url, options);
  const { profile, calibration, heldOut, findings, trust } = calibrated;
  const { json, text } = written(calibration, benchForm);
  const more = { relative_spread: calibration.spread, held_out: heldOut, untold_settings: findings, trust };
  return { profile, json: { ...(json as object), ...more }, text: `${text}\n${trustText(calibrated)}` };
}

async function fromDataSheets(options: Making): Promise<Made> {
  const profile = await estimatedStart(options);
  return { profile, json: { profile }, text: profileSheet(profile) };
}

function written<Calibration extends { readonly profile: EngineProfile }>(
  calibration: Calibration,
  { json, text }: Required<Form<Calibration>>,
): Made {
  return { profile: calibration.profile, json: json(calibration), text: text(calibration) };
}

/** GPU and model that a profile is made for. @throws InputError when one is not named. */
async function hardware({ gpu, model }: Making) {
  if (gpu === undefined) throw new InputError('--gpu is missing: which GPU was measured?');
  if (model === undefined) throw new InputError('--model is missing: which model was served?');
  return { gpu: await readGpu(gpu), model: await readModel(model) };
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
    ...{ start: startProfile, weights, maxNumSeqs, maxNumBatchedTokens, kvBlocks },
    source: options.source ?? files.map((file) => basename(file)).join(', '),
    command: commandLine({ ...options, engine: DEFAULT_ENGINE }, ...files),
  });
  return written(calibration, benchForm);
}

async function estimatedStart(options: Making): Promise<EngineProfile> {
  const { gpu, model } = await hardware(options);
  const { gpus, settings, engineVersion } = options;
  const kvCache = settings.fp8KvCache ? 'FP8' : 'FP16';
  if (engineVersion === undefined) return estimatedProfile(gpu, model, gpus, undefined, kvCache);
  const profile = estimatedProfile(gpu, model, gpus, vllmConstants(engineVersion), kvCache);
  return { ...profile, engine: { ...profile.engine, version: engineVersion } };
}

async function fromStaticBatches(options: Making, [file]: readonly string[]): Promise<Made> {
  const { gpus: count, engine, memoryOverhead: memoryOverheadGiB, source = basename(file) } = options;
  const named = await hardware(options);
  const rows = parseStaticBatches(await readInputFile(file), file);
  const command = commandLine(options, file);
  const calibration = { ...named, count, engine, memoryOverheadGiB, source, command };
  return written(calibrateStaticBatches(rows, calibration), staticBatchForm);
}

async function fromTables(options: Making, [folder]: readonly string[]): Promise<Made> {
  const { engine, settings, source, memoryOverhead: memoryOverheadGiB } = options;
  const isDefault = engine.toLowerCase() === DEFAULT_ENGINE.toLowerCase();
  const made = await profileFromTables(folder, engine, {
    ...(await hardware(options)),
    ...divisionOf(settings),
    ...{ memoryOverheadGiB, source },
    command: commandLine({ ...options, engine: isDefault ? DEFAULT_ENGINE : engine }, folder),
  });
  const { profile, errors, notes, versions } = made;
  const regions = Object.entries(errors).flatMap(([precision, of]) =>
    of.map((region, i) => ({ ...region, precision: i === 0 ? precision : '' })),
  );
  const text = [
    profileSheet(profile),
    '',
    `tables: ${versions.join(', ')}`,
    '',
    'error of the law against sums of kernel times, at sizes between those that it was made from:',
    ...table(regions, [
      ['weights', ({ precision }) => precision],
      ['iterations', ({ region }) => region],
      ['count', ({ iterations }) => String(iterations)],
      ['mean', ({ meanPercent }) => `${meanPercent.toFixed(1)} %`],
      ['worst', ({ worstPercent }) => `${worstPercent.toFixed(1)} %`],
    ]),
    ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `note: ${note}`)]),
  ];
  return { profile, json: { profile, tables: versions, errors, notes }, text: text.join('\n') };
}

/** The command that makes the profile again, wherever its sources lie. */
function commandLine(options: Making, ...sources: readonly string[]): string {
  const { start, gpu, model, engine, memoryOverhead } = options;
  const quoted = (flag: string, value: string | undefined) => value && `${flag} ${JSON.stringify(value)}`;
  const parts = [
    'servegym profile make',
    ...sources.map((source) => basename(source)),
    start && `--start ${basename(start)}`,
    gpu && `--gpu ${onCommandLine(gpu, findGpu)}`,
    start === undefined && `--model ${onCommandLine(model!, findModel)}`,
    quoted('--deployment', options.deployment),
    engine !== DEFAULT_ENGINE && `--engine ${engine}`,
    quoted('--engine-version', options.engineVersion),
    memoryOverhead !== undefined && `--memory-overhead ${memoryOverhead}`,
    quoted('--source', options.source),
  ];
  return parts.filter(Boolean).join(' ');
}

/** GPU or model as a command names it that makes a profile again: its id, or the file. */
function onCommandLine(nameOrFile: string, find: (name: string) => { readonly id: string }): string {
  if (!nameOrFile.endsWith('.json')) return find(nameOrFile).id;
  // The folder of a config.json names the model.
  const file = basename(nameOrFile);
  return file === 'config.json' ? join(basename(dirname(nameOrFile)), file) : file;
}
