import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import {
  calibrateStaticBatches,
  findGpu,
  findModel,
  GPUS,
  MODELS,
  parseStaticBatches,
} from '@servegym/simulator/calibration';
import { Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { numberAbove, wholeNumber } from '../options.ts';
import { readInputFile } from '../read-input-file.ts';
import { calibrationJson, calibrationTable } from '../reports/calibration-report.ts';

interface CalibrateOptions {
  readonly staticBatch: string;
  readonly gpu: string;
  readonly gpus: number;
  readonly model: string;
  readonly engine: string;
  readonly memoryOverhead?: number;
  readonly source?: string;
  readonly output?: string;
  readonly json: boolean;
}

/** `servegym calibrate`: an engine profile from measurements. */
export function calibrateCommand(): Command {
  return new Command('calibrate')
    .description('make an engine profile from measured latencies')
    .requiredOption(
      '--static-batch <file.csv>',
      'latencies of whole batches, columns gpu,gpus,engine,model,weights,kv_cache,input_tokens,output_tokens,batch,latency_s',
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
check its size. INT8 and INT4 weights are estimated, INT8 from pairs of rows with and without it where there are any.`,
    )
    .action(calibrate);
}

async function calibrate(options: CalibrateOptions): Promise<void> {
  const rows = parseStaticBatches(await readInputFile(options.staticBatch), options.staticBatch);
  const gpu = findGpu(options.gpu);
  const model = findModel(options.model);
  const calibration = calibrateStaticBatches(rows, {
    gpu,
    model,
    count: options.gpus,
    engine: options.engine,
    memoryOverheadGiB: options.memoryOverhead,
    source: options.source ?? basename(options.staticBatch),
    command: commandLine(options, gpu.id, model.id),
  });
  if (options.output !== undefined) await writeProfile(options.output, calibration.profile);
  console.log(
    options.json ? JSON.stringify(calibrationJson(calibration), null, 2) : calibrationTable(calibration),
  );
  if (options.output !== undefined && !options.json) console.log(`\nwrote ${options.output}`);
}

/** The command that makes the profile again, wherever the file lies. */
function commandLine(
  { staticBatch, gpus, engine, memoryOverhead, source }: CalibrateOptions,
  gpu: string,
  model: string,
): string {
  return [
    'servegym calibrate',
    `--static-batch ${basename(staticBatch)}`,
    `--gpu ${gpu}`,
    `--model ${model}`,
    ...(gpus === 1 ? [] : [`--gpus ${gpus}`]),
    ...(engine === 'vLLM' ? [] : [`--engine ${engine}`]),
    ...(memoryOverhead === undefined ? [] : [`--memory-overhead ${memoryOverhead}`]),
    ...(source === undefined ? [] : [`--source ${JSON.stringify(source)}`]),
  ].join(' ');
}

async function writeProfile(path: string, profile: unknown): Promise<void> {
  try {
    await writeFile(path, `${JSON.stringify(profile, null, 2)}\n`);
  } catch (error) {
    throw new InputError(`cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`);
  }
}
