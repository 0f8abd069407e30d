import { basename, join } from 'node:path';
import type { EngineProfile } from '@servegym/simulator';
import {
  calibrateKernels,
  calibrateStaticBatches,
  estimatedProfile,
  findGpu,
  findModel,
  GPUS,
  MODELS,
  parseKernelTables,
  parseStaticBatches,
} from '@servegym/simulator/calibration';
import { Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { numberAbove, wholeNumber } from '../options.ts';
import { readInputFile } from '../read-input-file.ts';
import { calibrationJson, calibrationTable, kernelCalibrationTable } from '../reports/calibration-report.ts';
import { profileSheet } from '../reports/profiles-report.ts';
import { writeOutputFile } from '../write-output-file.ts';

interface CalibrateOptions {
  readonly staticBatch?: string;
  readonly kernels?: string;
  readonly estimate?: true;
  readonly gpu: string;
  readonly gpus: number;
  readonly model: string;
  readonly engine: string;
  readonly memoryOverhead?: number;
  readonly source?: string;
  readonly output?: string;
  readonly json: boolean;
}

/** What a calibration answers: the profile, and the report on it in both forms. */
interface Calibrated {
  readonly profile: EngineProfile;
  readonly json: unknown;
  readonly table: string;
}

/** `servegym calibrate`: an engine profile from measurements, or from data sheets alone. */
export function calibrateCommand(): Command {
  return new Command('calibrate')
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
        '--estimate',
        'no measurements: the data sheets, with efficiencies measured elsewhere',
      ).conflicts(['staticBatch', 'source', 'memoryOverhead']),
    )
    .requiredOption('--gpu <name>', `GPU: ${GPUS.map(({ id }) => id).join(', ')}, or as the file calls it`)
    .requiredOption(
      '--model <name>',
      `model: ${MODELS.map(({ id }) => id).join(', ')}, or as the file calls it`,
    )
    .addOption(
      new Option('--gpus <n>', 'GPUs of the tensor-parallel group')
        .default(1)
        .argParser(wholeNumber(1, 1024)),
    )
    .option('--engine <name>', 'engine, as the file calls it', 'vLLM')
    .addOption(
      new Option(
        '--memory-overhead <GiB>',
        'what activations and CUDA graphs took of each GPU (default: 1.2)',
      ).argParser(numberAbove(0, 1000)),
    )
    .option('--source <text>', 'where the measurements come from (default: the name of the file)')
    .option('--output <file.json>', 'write the profile to this file')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Rows with FP16 weights and KV cache are fitted, four of them at least. Rows that do not fit the KV pool at once only
check its size. Other weights are fitted too where there are rows with them, else to the speedups of pairs of rows
with and without them, else estimated from bytes and arithmetic.`,
    )
    .action(calibrate);
}

async function calibrate(options: CalibrateOptions): Promise<void> {
  const { output } = options;
  const { profile, json, table } = await calibrated(options);
  if (output !== undefined) await writeOutputFile(output, [`${JSON.stringify(profile, null, 2)}\n`]);
  console.log(options.json ? JSON.stringify(json, null, 2) : table);
  if (output !== undefined && !options.json) console.log(`\nwrote ${output}`);
}

async function calibrated(options: CalibrateOptions): Promise<Calibrated> {
  const { staticBatch, kernels, estimate } = options;
  if (staticBatch !== undefined) return fromStaticBatches(options, staticBatch);
  if (kernels !== undefined) return fromKernels(options, kernels);
  if (estimate) return estimated(options);
  throw new InputError(
    'nothing to calibrate from: name measurements with --static-batch or --kernels, or ask for an --estimate',
  );
}

async function fromStaticBatches(options: CalibrateOptions, file: string): Promise<Calibrated> {
  const rows = parseStaticBatches(await readInputFile(file), file);
  const gpu = findGpu(options.gpu);
  const model = findModel(options.model);
  const calibration = calibrateStaticBatches(rows, {
    gpu,
    model,
    count: options.gpus,
    engine: options.engine,
    memoryOverheadGiB: options.memoryOverhead,
    source: options.source ?? basename(file),
    command: commandLine(options, `--static-batch ${basename(file)}`, gpu.id, model.id),
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
  const gpu = findGpu(options.gpu);
  const model = findModel(options.model);
  const calibration = calibrateKernels(tables, {
    gpu,
    model,
    memoryOverheadGiB: options.memoryOverhead,
    source: options.source ?? basename(folder),
    command: commandLine(options, `--kernels ${basename(folder)}`, gpu.id, model.id),
  });
  const { profile } = calibration;
  return { profile, json: calibration, table: kernelCalibrationTable(calibration) };
}

function estimated({ gpu, model, gpus }: CalibrateOptions): Calibrated {
  const profile = estimatedProfile(findGpu(gpu), findModel(model), gpus);
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
