import { basename } from 'node:path';
import type { Launch } from '@servegym/operators';
import { alignedRows } from '@servegym/operators/report';
import {
  engineOverheads,
  type Gpu,
  type ReadTables,
  readOperatorTables,
  type ServedModel,
  type TableProfile,
  tableProfile,
} from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { profileSheet } from './profiles-report.ts';

interface TablesOptions {
  readonly deployment?: string | undefined;
  readonly settings: Launch['settings'];
  readonly engine: string;
  readonly memoryOverhead?: number | undefined;
  readonly source?: string | undefined;
}

/** A profile from published kernel tables. `modelOption` names the model in the command that makes it again. */
export async function fromTables(
  folder: string,
  options: TablesOptions,
  gpu: Gpu,
  model: ServedModel,
  modelOption: string,
): Promise<{ profile: EngineProfile; json: unknown; table: string }> {
  const {
    tensorParallel: tensor = 1,
    dataParallel: data = 1,
    pipelineParallel: pipeline = 1,
  } = options.settings;
  const { weights, expertParallel, fp8KvCache } = options.settings;
  const read = await readOperatorTables(folder, gpu, options.engine);
  const made = tableProfile(read.tables, {
    gpu,
    measuredOn: read.measuredOn,
    model,
    parallel: { tensor, pipeline, data, expert: expertParallel ? tensor * data : 1 },
    weights,
    kvCache: fp8KvCache ? 'FP8' : 'FP16',
    ...engineOf(options.engine, read.engine),
    memoryOverheadGiB: options.memoryOverhead,
    source:
      options.source ??
      `kernel tables of ${read.measuredOn.name} with ${read.engine.name} ${read.engine.version} (aiconfigurator-core)`,
    command: commandLine(folder, options, gpu, modelOption),
  });
  const notes = [
    ...(read.measuredOn.id === gpu.id
      ? []
      : [`scaled by bandwidth and arithmetic from ${read.measuredOn.name}, which the tables are of`]),
    ...made.notes,
  ];
  return {
    profile: made.profile,
    json: { profile: made.profile, tables: read.versions, errors: made.errors, notes },
    table: tablesReport(made, read.versions, notes),
  };
}

/** Engine of the profile: the version that was asked for where its own time is not that of the tables' version. */
function engineOf(asked: string, { name, version }: ReadTables['engine']) {
  const [, family, before] = /^(vllm|sglang)-(\d+(?:\.\d+)*)/i.exec(asked) ?? [];
  const overheads = engineOverheads(name === 'SGLang' ? 'sglang' : 'vllm', before ?? null);
  const isOther =
    family !== undefined && overheads !== engineOverheads(name === 'SGLang' ? 'sglang' : 'vllm', null);
  return { engine: { name, version: isOther ? before : version }, overheads };
}

/** Report on a profile from tables. */
function tablesReport(
  { profile, errors }: TableProfile,
  versions: readonly string[],
  notes: readonly string[],
): string {
  const rows = Object.entries(errors).flatMap(([precision, regions]) =>
    regions.map(({ region, iterations, meanPercent, worstPercent }, i) => [
      i === 0 ? precision : '',
      region,
      String(iterations),
      `${meanPercent.toFixed(1)} %`,
      `${worstPercent.toFixed(1)} %`,
    ]),
  );
  return [
    profileSheet(profile),
    '',
    `tables: ${versions.join(', ')}`,
    '',
    'error of the law against sums of kernel times, at sizes between those that it was made from:',
    ...alignedRows([['weights', 'iterations', 'count', 'mean', 'worst'], ...rows]),
    ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `note: ${note}`)]),
  ].join('\n');
}

function commandLine(folder: string, options: TablesOptions, gpu: Gpu, model: string): string {
  const { deployment, engine, memoryOverhead, source } = options;
  return [
    `servegym profile make ${basename(folder)}`,
    `--gpu ${gpu.id}`,
    `--model ${model}`,
    ...(deployment === undefined ? [] : [`--deployment ${JSON.stringify(deployment)}`]),
    ...(engine.toLowerCase() === 'vllm' ? [] : [`--engine ${engine}`]),
    ...(memoryOverhead === undefined ? [] : [`--memory-overhead ${memoryOverhead}`]),
    ...(source === undefined ? [] : [`--source ${JSON.stringify(source)}`]),
  ].join(' ');
}
