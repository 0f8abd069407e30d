import { basename, join } from 'node:path';
import {
  drawWorkload,
  type FittedWorkload,
  fitWorkload,
  PUBLIC_WORKLOAD_IDS,
  type PublicWorkloadId,
  publicWorkload,
  type WorkloadIdentity,
} from '@servegym/environments';
import { findReferenceFiles, REFERENCE_DATA, type ReferenceFile } from '@servegym/operators/fidelity';
import { readTrace } from '@servegym/operators/traces';
import { Argument, Command } from 'commander';
import { numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { requireWritable, writeJsonFile, writeOutputFile } from '../output/write-output-file.ts';
import { trafficTable } from './traffic-report.ts';

/** The public traces that workloads are fitted to. */
const PUBLIC_TRACES: readonly (WorkloadIdentity & { readonly file: ReferenceFile })[] = [
  {
    id: 'azure-conversation-2023',
    title: 'Azure, conversation, November 2023',
    source: 'AzureLLMInferenceTrace_conv (Azure/AzurePublicDataset, CC-BY-4.0)',
    file: REFERENCE_DATA.azureConversation,
  },
  {
    id: 'azure-code-2023',
    title: 'Azure, code completion, November 2023',
    source: 'AzureLLMInferenceTrace_code (Azure/AzurePublicDataset, CC-BY-4.0)',
    file: REFERENCE_DATA.azureCode,
  },
  {
    id: 'mooncake-conversation',
    title: 'Mooncake (Kimi), conversation, 2024',
    source: 'conversation_trace (kvcache-ai/Mooncake, Apache-2.0)',
    file: REFERENCE_DATA.mooncakeConversation,
  },
  {
    id: 'ragpulse',
    title: 'RAGPulse, answers from documents, 2025',
    source: 'RAGPulse (flashserve/RAGPulse, MIT)',
    file: REFERENCE_DATA.ragPulse,
  },
];

interface FitOptions {
  readonly data?: string;
  readonly out?: string;
  readonly id?: string;
  readonly json: boolean;
}

/** `servegym traffic`: models of traffic, fitted to traces. */
export function trafficCommand(): Command {
  return new Command('traffic')
    .description(
      'models of traffic that tasks can be played under: list them, draw traces from them, fit new ones',
    )
    .addCommand(
      new Command('list')
        .description(
          'list the models and their distance to the traces; `reset({traffic})` takes all except ragpulse',
        )
        .option('--json', 'print one JSON array', false)
        .action(({ json }: { json: boolean }) => {
          const models = PUBLIC_WORKLOAD_IDS.map(publicWorkload);
          printModels(models, json);
        }),
    )
    .addCommand(
      new Command('fit')
        .description('fit a model to each trace, and say how near it comes')
        .argument('[files...]', 'traces, in the forms that `servegym simulate` takes')
        .option(
          '--data <folder>',
          'the public traces behind the models, as docs/reference-data.md describes them',
        )
        .option('--id <name>', 'how the model is called; with one file')
        .option('--out <folder>', 'write each model into this folder, as <id>.json')
        .option('--json', 'print one JSON array', false)
        .action(fit),
    )
    .addCommand(drawCommand());
}

async function fit(files: readonly string[], { data, id, out, json }: FitOptions): Promise<void> {
  const traces = [
    ...files.map((file) => ownTrace(file, id)),
    ...(data === undefined ? [] : publicTraces(data)),
  ];
  if (traces.length === 0) throw new InputError('expected traces, or a folder of them with --data');
  if (id !== undefined && traces.length > 1) throw new InputError('expected one file with --id');
  const models: FittedWorkload[] = [];
  for (const { file, identity } of traces) {
    const { trace } = await readTrace(file);
    const model = fitWorkload(trace, identity);
    models.push(model);
    if (out !== undefined) await writeJsonFile(join(out, `${model.id}.json`), model);
  }
  printModels(models, json);
}

function printModels(models: readonly FittedWorkload[], json: boolean): void {
  printResult(
    json,
    () => models,
    () => trafficTable(models),
  );
}

interface TraceToFit {
  readonly file: string;
  readonly identity: WorkloadIdentity;
}

function ownTrace(file: string, id: string | undefined): TraceToFit {
  const name = basename(file).replace(/\.[^.]+$/, '');
  return { file, identity: { id: id ?? name, title: id ?? name, source: basename(file) } };
}

function publicTraces(folder: string): TraceToFit[] {
  const files = findReferenceFiles(
    folder,
    PUBLIC_TRACES.map(({ file }) => file),
  );
  return PUBLIC_TRACES.map(({ file: _, ...identity }, i) => ({ file: files[i], identity }));
}

interface DrawOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly rateScale: number;
  readonly output: string;
}

const MOST_SECONDS = 86_400;

/** `servegym traffic draw`: a trace drawn from a fitted workload. */
function drawCommand(): Command {
  return new Command('draw')
    .description('draw a trace from a model, as CSV with the columns of the Azure traces')
    .addArgument(new Argument('<id>', 'the model').choices(PUBLIC_WORKLOAD_IDS))
    .requiredOption('--output <file.csv>', 'write the trace to this file')
    .option('--seconds <s>', 'length of the trace', numberAbove(0, MOST_SECONDS), 3600)
    .option('--seed <n>', 'the same seed draws the same trace', wholeNumber(0, 2 ** 31), 0)
    .option('--rate-scale <x>', 'arrivals come this many times as fast', numberFrom(0.01, 20), 1)
    .addHelpText('after', '\nPrompts share nothing, whatever the model says of prefixes.')
    .action(draw);
}

async function draw(id: PublicWorkloadId, { seconds, seed, rateScale, output }: DrawOptions): Promise<void> {
  await requireWritable(output);
  const { arrivalSeconds, inputTokens, outputTokens } = drawWorkload(publicWorkload(id), seed, seconds, {
    rateScale,
  });
  await writeOutputFile(output, [
    'TIMESTAMP,ContextTokens,GeneratedTokens\n',
    ...arrivalSeconds.map((at, i) => `${timestamp(at)},${inputTokens[i]},${outputTokens[i]}\n`),
  ]);
  console.log(`wrote ${arrivalSeconds.length} requests over ${seconds} s to ${output}`);
}

/** Date and time of the Azure traces; a drawn trace begins at the start of 2024. */
function timestamp(seconds: number): string {
  const date = new Date(Date.UTC(2024, 0, 1) + Math.floor(seconds) * 1000);
  const ticks = Math.floor((seconds % 1) * 1e7);
  return `${date.toISOString().slice(0, 19).replace('T', ' ')}.${String(ticks).padStart(7, '0')}`;
}
