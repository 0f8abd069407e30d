import { basename } from 'node:path';
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
import type { EngineProfile, KvPrecision, WeightPrecision } from '@servegym/simulator';
import { InputError } from '../input-error.ts';
import { profileSheet } from '../profiles/profiles-report.ts';

/** Options of `calibrate --tables`, some of them shared with the other ways. */
export interface TablesOptions {
  readonly tables: string;
  readonly gpus: number;
  readonly expertParallel: number;
  readonly dataParallel: number;
  readonly pipeline: number;
  readonly weights?: WeightPrecision;
  readonly kvCache: KvPrecision;
  readonly engine: string;
  readonly memoryOverhead?: number;
  readonly source?: string;
}

/** A profile from published kernel tables. `modelOption` names the model in the command that makes it again. */
export async function fromTables(
  options: TablesOptions,
  gpu: Gpu,
  model: ServedModel,
  modelOption: string,
): Promise<{ profile: EngineProfile; json: unknown; table: string }> {
  const { gpus, expertParallel, dataParallel, pipeline } = options;
  const tensor = gpus / dataParallel / pipeline;
  if (!Number.isInteger(tensor)) {
    throw new InputError(
      `expected --gpus as a multiple of --data-parallel times --pipeline, got ${gpus}, ${dataParallel} and ${pipeline}`,
    );
  }
  const read = await readOperatorTables(options.tables, gpu, options.engine);
  const made = tableProfile(read.tables, {
    gpu,
    measuredOn: read.measuredOn,
    model,
    parallel: { tensor, pipeline, data: dataParallel, expert: expertParallel },
    weights: options.weights,
    kvCache: options.kvCache,
    ...engineOf(options.engine, read.engine),
    memoryOverheadGiB: options.memoryOverhead,
    source:
      options.source ??
      `kernel tables of ${read.measuredOn.name} with ${read.engine.name} ${read.engine.version} (aiconfigurator-core)`,
    command: commandLine(options, gpu, modelOption),
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

/** Output of `calibrate --tables` without `--json`. */
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

function commandLine(options: TablesOptions, gpu: Gpu, model: string): string {
  const { gpus, expertParallel, dataParallel, pipeline, weights, kvCache, engine } = options;
  const { memoryOverhead, source } = options;
  const sizes = { gpus, 'expert-parallel': expertParallel, 'data-parallel': dataParallel, pipeline };
  return [
    `servegym calibrate --tables ${basename(options.tables)}`,
    `--gpu ${gpu.id}`,
    `--model ${model}`,
    ...Object.entries(sizes).flatMap(([name, size]) => (size === 1 ? [] : [`--${name} ${size}`])),
    ...(weights === undefined ? [] : [`--weights ${weights}`]),
    ...(kvCache === 'FP16' ? [] : [`--kv-cache ${kvCache}`]),
    ...(engine.toLowerCase() === 'vllm' ? [] : [`--engine ${engine}`]),
    ...(memoryOverhead === undefined ? [] : [`--memory-overhead ${memoryOverhead}`]),
    ...(source === undefined ? [] : [`--source ${JSON.stringify(source)}`]),
  ].join(' ');
}
