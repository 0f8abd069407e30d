// npx node benchmarks/league/static-batches.ts --data reference-data --tables aiconfigurator_core [--iteration-us n] [--per-sequence-us n]
//
// Static batches of LLM-Inference-Bench (16-bit weights, vLLM) predicted from kernel tables alone, with the engine's time of
// the version that it was or with other figures for it. Batches that overflow the KV pool are left out.
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import {
  type EngineOverheads,
  engineOverheads,
  findGpu,
  findModel,
  parseStaticBatches,
  readOperatorTables,
  type StaticBatchRow,
  simulateBatch,
  tableProfile,
} from '@servegym/profiles';
import { mean } from '@servegym/simulator/statistics';

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: 'reference-data' },
    tables: { type: 'string', default: 'aiconfigurator_core' },
    'iteration-us': { type: 'string' },
    'per-sequence-us': { type: 'string' },
  },
});

const LARGEST_BATCH = 64;
/** Memory sizes of the GPUs that were measured. */
const GPUS: Readonly<Record<string, string>> = { A100: 'a100-40gb', H100: 'h100-80gb', GH200: 'gh200-96gb' };

/** Versions of vLLM, by the scripts beside the measurements: those for A100 ask for the libraries of 0.6, those for H100 are older. */
const VERSIONS: Readonly<Record<string, string>> = { A100: '0.6.2', H100: '0.5.4', GH200: '0.5.4' };

function overheadsOn(gpu: string): EngineOverheads {
  const overheads = engineOverheads('vllm', VERSIONS[gpu]);
  return {
    ...overheads,
    iterationUs: Number(values['iteration-us'] ?? overheads.iterationUs),
    perSequenceUs: Number(values['per-sequence-us'] ?? overheads.perSequenceUs),
  };
}

const [file] = findReferenceFiles(values.data, [REFERENCE_DATA.staticBatches]);
const rows = parseStaticBatches(await readFile(file, 'utf8'), file).filter(
  ({ engine, weights, kvCache }) => engine === 'vLLM' && weights === 'fp16' && kvCache === 'fp16',
);
const all: number[] = [];
const servers = Map.groupBy(rows, ({ gpu, gpus, model }) => `${gpus} x ${gpu}, ${model}`);
for (const [server, measured] of servers) {
  const { gpu: name, gpus, model: modelName } = measured[0];
  const gpu = findGpu(GPUS[name] ?? name);
  const { tables, measuredOn, engine } = await readOperatorTables(values.tables, gpu, 'vllm');
  const { profile } = tableProfile(tables, {
    ...{
      gpu,
      measuredOn,
      model: findModel(modelName),
      weights: 'FP16',
      engine,
      overheads: overheadsOn(name),
    },
    parallel: { tensor: gpus, pipeline: 1, data: 1, expert: 1 },
    ...{ source: 'kernel tables', command: 'benchmarks/league/static-batches.ts' },
  });
  const isOverflowing = ({ batch, inputTokens, outputTokens }: StaticBatchRow) =>
    name === 'A100' && gpus === 1 && batch * (inputTokens + outputTokens) > 200_000;
  const errors = measured
    .filter((row) => !isOverflowing(row))
    .map((row) => ({ ...row, predictedS: simulateBatch(profile, 'FP16', row) }))
    .map((row) => ({ ...row, error: 100 * (row.predictedS / row.latencyS - 1) }));
  all.push(...errors.map(({ error }) => Math.abs(error)));
  const byBatch = [...Map.groupBy(errors, ({ batch }) => batch)].map(
    ([batch, of]) => `batch ${batch}: ${mean(of.map(({ error }) => error)).toFixed(1)} %`,
  );
  const size = mean(errors.map(({ error }) => Math.abs(error)));
  const largest = errors.filter(({ batch }) => batch === LARGEST_BATCH);
  const slopes = [contextNs(largest, 'latencyS'), contextNs(largest, 'predictedS')];
  console.log(
    `${server}: ${errors.length} rows, ${size.toFixed(1)} % (signed ${byBatch.join(', ')}), ` +
      `a context token ${slopes.map((ns) => ns.toFixed(0)).join(' ns, predicted ')} ns`,
  );
}
console.log(`all: ${all.length} rows, ${mean(all).toFixed(1)} %`);

/** Nanoseconds by which an iteration grows with each context token, from the shortest and the longest of the batches. */
function contextNs(
  batches: readonly (StaticBatchRow & { readonly predictedS: number })[],
  time: 'latencyS' | 'predictedS',
): number {
  const sorted = batches.toSorted((a, b) => a.inputTokens - b.inputTokens);
  const [short, long] = [sorted[0], sorted[sorted.length - 1]];
  const meanContext = ({ batch, inputTokens, outputTokens }: StaticBatchRow) =>
    batch * (inputTokens + outputTokens / 2);
  const growth = long[time] / long.outputTokens - short[time] / short.outputTokens;
  return (1e9 * growth) / (meanContext(long) - meanContext(short));
}
