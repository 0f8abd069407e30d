import { basename, join } from 'node:path';
import {
  type FittedWorkload,
  findWorkload,
  fitWorkload,
  WORKLOAD_IDS,
  type WorkloadIdentity,
} from '@servegym/environments';
import { findReferenceFiles } from '@servegym/tuning/fidelity';
import { Command } from 'commander';
import { readTrace } from '../arguments/read-trace.ts';
import { InputError } from '../input-error.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import { PUBLIC_TRACES } from './public-traces.ts';
import { drawTrafficCommand } from './traffic-draw-command.ts';
import { trafficTable } from './traffic-report.ts';

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
        .description('the models that `reset({traffic})` takes, and how near they come to their traces')
        .option('--json', 'print one JSON array', false)
        .action(({ json }: { json: boolean }) => {
          const models = WORKLOAD_IDS.map((id) => findWorkload(id) as FittedWorkload);
          console.log(json ? JSON.stringify(models, null, 2) : trafficTable(models));
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
    .addCommand(drawTrafficCommand());
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
    if (out !== undefined) {
      await writeOutputFile(join(out, `${model.id}.json`), [`${JSON.stringify(model, null, 2)}\n`]);
    }
  }
  console.log(json ? JSON.stringify(models, null, 2) : trafficTable(models));
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
