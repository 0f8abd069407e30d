import { basename, dirname, join } from 'node:path';
import {
  calibrateBench,
  calibrateKernels,
  calibrateStaticBatches,
  estimatedProfile,
  findGpu,
  findModel,
  GPUS,
  type Gpu,
  MODELS,
  parseBenchResult,
  parseKernelTables,
  parseStaticBatches,
  type ServedModel,
  vllmConstants,
} from '@servegym/profiles';
import {
  type EngineProfile,
  KV_PRECISIONS,
  type KvPrecision,
  MOST_API_SERVERS,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
} from '@servegym/simulator';
import { Command, InvalidArgumentError, Option } from 'commander';
import { readGpu, readModel } from '../arguments/hardware.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { readInputFile, readProfile } from '../arguments/read-input-file.ts';
import { InputError } from '../input-error.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';
import { profileSheet } from '../profiles/profiles-report.ts';
import { calibrateRunningServer, type ServerOptions, trustTable } from './calibrate-server.ts';
import {
  benchCalibrationJson,
  benchCalibrationTable,
  calibrationJson,
  calibrationTable,
  kernelCalibrationTable,
} from './calibration-report.ts';
import { fromTables, type TablesOptions } from './from-tables.ts';

interface CalibrateOptions extends Partial<Omit<ServerOptions, 'gpus'>> {
  readonly staticBatch?: string;
  readonly kernels?: string;
  readonly tables?: string;
  readonly expertParallel: number;
  readonly dataParallel: number;
  readonly pipeline: number;
  readonly kvCache: KvPrecision;
  readonly bench?: readonly string[];
  readonly start?: string;
  readonly weights?: WeightPrecision;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly kvBlocks?: number;
  readonly apiServerCount?: number;
  readonly estimate?: true;
  readonly gpu?: string;
  readonly gpus: number;
  readonly model?: string;
  readonly engine: string;
  readonly engineVersion?: string;
  readonly memoryOverhead?: number;
  readonly source?: string;
  readonly output?: string;
  readonly json: boolean;
}

/** Result of a calibration: the profile, and the report on it in both forms. */
interface Calibrated {
  readonly profile: EngineProfile;
  readonly json: unknown;
  readonly table: string;
}

/** `servegym calibrate`: an engine profile from measurements, or from data sheets alone. */
export function calibrateCommand(): Command {
  return withCalibrateOptions(new Command('calibrate')).action(calibrate);
}

/**
 * The profile that a command line makes again which a profile names.
 *
 * @param line `servegym calibrate ...`; a `"..."` is one word
 * @param locate Path of a file or folder, by the name that the command gives it
 */
export async function calibratedBy(line: string, locate: (name: string) => string): Promise<EngineProfile> {
  const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
  const command = withCalibrateOptions(new Command());
  command.parse(words.slice(2), { from: 'user' });
  const options = command.opts<CalibrateOptions>();
  const { staticBatch, kernels, tables } = options;
  const { profile } = await calibrated({
    ...options,
    ...(staticBatch !== undefined && { staticBatch: locate(staticBatch) }),
    ...(kernels !== undefined && { kernels: locate(kernels) }),
    ...(tables !== undefined && { tables: locate(tables) }),
  });
  return profile;
}

function withCalibrateOptions(command: Command): Command {
  return command
    .description('make an engine profile from measured latencies, or estimate one')
    .option(
      '--static-batch <file.csv>',
      'latencies of whole batches, columns gpu,gpus,engine,model,weights,kv_cache,input_tokens,output_tokens,batch,latency_s',
    )
    .addOption(
      new Option(
        '--kernels <folder>',
        'kernel times of one GPU: dense.csv, per_sequence.csv, attention.csv',
      ).conflicts(['staticBatch', 'estimate', 'gpus']),
    )
    .addOption(
      new Option(
        '--tables <folder>',
        'published kernel times of many GPUs: the unpacked package aiconfigurator-core (Apache-2.0)',
      ).conflicts(['staticBatch', 'kernels', 'estimate']),
    )
    .addOption(
      new Option('--expert-parallel <n>', 'with --tables: GPUs that the experts are divided over')
        .default(1)
        .argParser(wholeNumber(1, 1024)),
    )
    .addOption(
      new Option('--data-parallel <n>', 'with --tables: replicas of the attention that share the experts')
        .default(1)
        .argParser(wholeNumber(1, 1024)),
    )
    .addOption(
      new Option('--pipeline <n>', 'with --tables: stages of the pipeline')
        .default(1)
        .argParser(wholeNumber(1, 1024)),
    )
    .addOption(
      new Option('--kv-cache <precision>', 'with --tables and --estimate: precision of the KV cache')
        .choices(KV_PRECISIONS)
        .default('FP16'),
    )
    .addOption(
      new Option(
        '--bench <file...>',
        'loads on a server: results of vllm bench serve --save-result --save-detailed, GuideLLM reports, or JSON lines of request timings',
      ).conflicts(['staticBatch', 'kernels', 'tables', 'estimate', 'memoryOverhead']),
    )
    .addOption(
      new Option(
        '--server <url>',
        'a running server of the OpenAI API that streams, such as http://gpu:8000/v1: sends loads to it and measures',
      ).conflicts(['staticBatch', 'kernels', 'tables', 'bench', 'estimate', 'memoryOverhead']),
    )
    .addOption(new Option('--api-key <text>', 'with --server: key of the API').env('OPENAI_API_KEY'))
    .option(
      '--served-model-name <name>',
      'with --server: model to ask for (default: the first that it lists)',
    )
    .addOption(
      new Option('--minutes <n>', 'with --server: how long it may take')
        .default(5)
        .argParser(numberAbove(0, 1440)),
    )
    .addOption(
      new Option('--most-tokens <n>', 'with --server: tokens that it may send and ask for')
        .default(1_000_000)
        .argParser(wholeNumber(1, 1_000_000_000)),
    )
    .addOption(
      new Option(
        '--usd-per-million-tokens <usd>',
        'with --server: price, to say what the load costs',
      ).argParser(numberAbove(0, 10_000)),
    )
    .option('--yes', 'with --server: do not ask before loads are sent')
    .option('--resume', 'with --server: go on with the loads that an interrupted run has kept')
    .addOption(
      new Option(
        '--max-model-len <n>',
        'with --server: most tokens of a prompt and its output, where the server does not tell',
      ).argParser(wholeNumber(64, 10_000_000)),
    )
    .option(
      '--start <name|file.json>',
      'with --bench and --server: the profile to start from (default: the estimated one)',
    )
    .addOption(
      new Option(
        '--weights <precision>',
        'precision of the weights; with --bench the served one (default: FP16), with --tables only this one (default: all precisions of the tables)',
      ).choices(WEIGHT_PRECISIONS),
    )
    .addOption(
      new Option(
        '--max-num-seqs <n>',
        'with --bench and --server: as the server was started (default: 256)',
      ).argParser(wholeNumber(1, 1_000_000)),
    )
    .addOption(
      new Option(
        '--max-num-batched-tokens <n>',
        'with --bench and --server: as the server was started (default: 2048)',
      ).argParser(wholeNumber(1, 1_000_000)),
    )
    .addOption(
      new Option(
        '--kv-blocks <n>',
        'with --bench and --server: KV blocks of the server (default: what the memory leaves)',
      ).argParser(wholeNumber(1, 2 ** 30)),
    )
    .addOption(
      new Option(
        '--api-server-count <n>',
        'with --server: processes of its front end; the profile then has their queue (default: no queue)',
      ).argParser(wholeNumber(1, MOST_API_SERVERS)),
    )
    .addOption(
      new Option(
        '--estimate',
        'no measurements: the data sheets, with efficiencies measured elsewhere',
      ).conflicts(['staticBatch', 'source', 'memoryOverhead']),
    )
    .option(
      '--gpu <name>',
      `GPU: ${GPUS.map(({ id }) => id).join(', ')}, or as the file calls it, or a description of yours in a .json file`,
    )
    .option(
      '--model <name>',
      `model: ${MODELS.map(({ id }) => id).join(', ')}, or as the file calls it, or a config.json of Hugging Face`,
    )
    .addOption(
      new Option('--gpus <n>', 'GPUs of the tensor-parallel group; with --tables all of the engine')
        .default(1)
        .argParser(wholeNumber(1, 1024)),
    )
    .option(
      '--engine <name>',
      'engine, as the file calls it; with --tables such as vllm-0.24 or sglang',
      'vLLM',
    )
    .addOption(
      new Option(
        '--engine-version <version>',
        'with --estimate, and with --bench without --start: version of vLLM, such as 0.6 (default: the newest); before 0.8 it has no V1 engine, before 0.14 no asynchronous scheduling by default',
      )
        .argParser(vllmVersion)
        .conflicts(['staticBatch', 'kernels', 'tables', 'server', 'start']),
    )
    .addOption(
      new Option(
        '--memory-overhead <GiB>',
        'memory of each GPU for activations and CUDA graphs (default: 1.2)',
      ).argParser(numberAbove(0, 1000)),
    )
    .option('--source <text>', 'where the measurements come from (default: the name of the file)')
    .option('--output <file.json>', 'write the profile to this file')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Every way needs --gpu and --model, but for --server, and --bench with a --start.
--static-batch: rows with FP16 weights and KV cache are fitted, four of them at least. Rows that do not fit the KV pool
at once only check its size. Other weights are fitted too where there are rows with them, else to the speedups of pairs of rows
with and without them, else estimated from bytes and arithmetic.
--tables: an iteration is the sum of its kernels and of the engine's own time, and the law is exact at powers of two.
--gpus are all of the engine: tensor parallelism is what --data-parallel and --pipeline leave of them.
--bench: the loads are served on the simulator, and the profile moves until TTFT and TPOT agree. Loads of several rates
and lengths determine more of it. Prompts are taken to share nothing.

--server: sends single requests, batches, long prompts and open loads up to saturation, each where the profile is least
known, holds one load out, and says how far the profile can be trusted. Ctrl-C keeps what was measured.

Examples:
  servegym calibrate --server http://gpu:8000/v1 --max-num-seqs 256 --output mine.json
  servegym calibrate --tables aiconfigurator_core --gpu h200-141gb --model qwen3-235b-a22b --gpus 4 --expert-parallel 4
  servegym calibrate --bench rate-1.json rate-8.json --gpu h100-80gb --model llama-3-8b --output mine.json
  servegym calibrate --bench guidellm.json --start mine.json --kv-blocks 27000 --output better.json`,
    );
}

async function calibrate(options: CalibrateOptions): Promise<void> {
  const { output } = options;
  await requireWritable(output);
  const { profile, json, table } = await calibrated(options);
  if (output !== undefined) await writeOutputFile(output, [`${JSON.stringify(profile, null, 2)}\n`]);
  console.log(options.json ? JSON.stringify(json, null, 2) : table);
  if (output !== undefined && !options.json) console.log(`\nwrote ${output}`);
}

async function calibrated(options: CalibrateOptions): Promise<Calibrated> {
  const { staticBatch, kernels, tables, bench, estimate, server } = options;
  if (server !== undefined) {
    const calibrated = await calibrateRunningServer({ ...(options as ServerOptions), server });
    const { calibration, profile, heldOut, findings, trust } = calibrated;
    return {
      profile,
      json: {
        ...benchCalibrationJson(calibration),
        relative_spread: calibration.spread,
        held_out: heldOut,
        untold_settings: findings,
        trust,
      },
      table: `${benchCalibrationTable(calibration)}\n${trustTable(calibrated)}`,
    };
  }
  if (bench !== undefined) return fromBench(options, bench);
  if (staticBatch !== undefined) return fromStaticBatches(options, staticBatch);
  if (kernels !== undefined) return fromKernels(options, kernels);
  if (tables !== undefined) {
    const { gpu, model } = await hardware(options);
    return fromTables(
      { ...(options as TablesOptions), tables },
      gpu,
      model,
      onCommandLine(options.model!, findModel),
    );
  }
  if (estimate) return estimated(options);
  throw new InputError(
    'nothing to calibrate from: name measurements with --static-batch, --kernels, --tables or --bench, a running --server, or ask for an --estimate',
  );
}

/** GPU and model that a profile is made for. @throws InputError when one is not named. */
async function hardware({ gpu, model }: CalibrateOptions): Promise<{ gpu: Gpu; model: ServedModel }> {
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

async function fromBench(options: CalibrateOptions, files: readonly string[]): Promise<Calibrated> {
  const { start, weights = 'FP16', maxNumSeqs, maxNumBatchedTokens, kvBlocks } = options;
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

async function estimatedStart(options: CalibrateOptions): Promise<EngineProfile> {
  const { gpu, model } = await hardware(options);
  const { gpus, kvCache, engineVersion } = options;
  if (engineVersion === undefined) return estimatedProfile(gpu, model, gpus, undefined, kvCache);
  const profile = estimatedProfile(gpu, model, gpus, vllmConstants(engineVersion), kvCache);
  return { ...profile, engine: { ...profile.engine, version: engineVersion } };
}

function vllmVersion(text: string): string {
  if (/^\d+\.\d+(\.\w+)*$/.test(text)) return text;
  throw new InvalidArgumentError(`Expected a version of vLLM, such as 0.6 or 0.15.1, got \`${text}\`.`);
}

function benchCommandLine(options: CalibrateOptions, files: readonly string[]): string {
  const {
    start,
    gpu,
    model,
    gpus,
    weights = 'FP16',
    maxNumSeqs,
    maxNumBatchedTokens,
    kvBlocks,
    source,
    engineVersion,
  } = options;
  const hardwareFlags =
    start === undefined
      ? [
          `--gpu ${onCommandLine(gpu!, findGpu)}`,
          `--model ${onCommandLine(model!, findModel)}`,
          ...(gpus === 1 ? [] : [`--gpus ${gpus}`]),
          ...(engineVersion === undefined ? [] : [`--engine-version ${engineVersion}`]),
        ]
      : [`--start ${basename(start)}`];
  return [
    'servegym calibrate --bench',
    ...files.map((file) => basename(file)),
    ...hardwareFlags,
    ...(weights === 'FP16' ? [] : [`--weights ${weights}`]),
    ...(maxNumSeqs === undefined ? [] : [`--max-num-seqs ${maxNumSeqs}`]),
    ...(maxNumBatchedTokens === undefined ? [] : [`--max-num-batched-tokens ${maxNumBatchedTokens}`]),
    ...(kvBlocks === undefined ? [] : [`--kv-blocks ${kvBlocks}`]),
    ...(source === undefined ? [] : [`--source ${JSON.stringify(source)}`]),
  ].join(' ');
}

async function fromStaticBatches(options: CalibrateOptions, file: string): Promise<Calibrated> {
  const { gpu, model } = await hardware(options);
  const rows = parseStaticBatches(await readInputFile(file), file);
  const calibration = calibrateStaticBatches(rows, {
    gpu,
    model,
    count: options.gpus,
    engine: options.engine,
    memoryOverheadGiB: options.memoryOverhead,
    source: options.source ?? basename(file),
    command: commandLine(
      options,
      `--static-batch ${basename(file)}`,
      onCommandLine(options.gpu!, findGpu),
      onCommandLine(options.model!, findModel),
    ),
  });
  const { profile } = calibration;
  return { profile, json: calibrationJson(calibration), table: calibrationTable(calibration) };
}

async function fromKernels(options: CalibrateOptions, folder: string): Promise<Calibrated> {
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
    command: commandLine(
      options,
      `--kernels ${basename(folder)}`,
      onCommandLine(options.gpu!, findGpu),
      onCommandLine(options.model!, findModel),
    ),
  });
  const { profile } = calibration;
  return { profile, json: calibration, table: kernelCalibrationTable(calibration) };
}

async function estimated(options: CalibrateOptions): Promise<Calibrated> {
  const profile = await estimatedStart(options);
  return { profile, json: { profile }, table: profileSheet(profile) };
}

/** The command that makes the profile again, wherever the file lies. */
function commandLine(
  { gpus, engine, memoryOverhead, source }: CalibrateOptions,
  from: string,
  gpu: string,
  model: string,
): string {
  return [
    'servegym calibrate',
    from,
    `--gpu ${gpu}`,
    `--model ${model}`,
    ...(gpus === 1 ? [] : [`--gpus ${gpus}`]),
    ...(engine === 'vLLM' ? [] : [`--engine ${engine}`]),
    ...(memoryOverhead === undefined ? [] : [`--memory-overhead ${memoryOverhead}`]),
    ...(source === undefined ? [] : [`--source ${JSON.stringify(source)}`]),
  ].join(' ');
}
