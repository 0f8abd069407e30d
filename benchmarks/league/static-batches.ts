// npx node benchmarks/league/static-batches.ts --data reference-data --tables aiconfigurator_core [--iteration-us n] [--per-sequence-us n]
//
// Static batches of LLM-Inference-Bench (16-bit weights, vLLM) predicted from kernel tables alone, with the engine's time of
// vLLM before V1 or with other figures for it. Batches that overflow the KV pool are left out.
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import {
  engineOverheads,
  findGpu,
  findModel,
  parseStaticBatches,
  type StaticBatchRow,
  simulateBatch,
  tableProfile,
} from '@servegym/simulator/calibration';
import { mean } from '@servegym/simulator/statistics';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/tuning/fidelity';
import { readOperatorTables } from '@servegym/tuning/tables';

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: 'reference-data' },
    tables: { type: 'string', default: 'aiconfigurator_core' },
    'iteration-us': { type: 'string' },
    'per-sequence-us': { type: 'string' },
  },
});

/** Memory sizes of the GPUs that were measured. */
const GPUS: Readonly<Record<string, string>> = { A100: 'a100-40gb', H100: 'h100-80gb', GH200: 'gh200-96gb' };

const before = engineOverheads('vllm', '0.6.0');
const overheads = {
  ...before,
  iterationUs: Number(values['iteration-us'] ?? before.iterationUs),
  perSequenceUs: Number(values['per-sequence-us'] ?? before.perSequenceUs),
};
const [file] = findReferenceFiles(values.data, [REFERENCE_DATA.staticBatches]);
const rows = parseStaticBatches(await readFile(file, 'utf8'), file).filter(
  ({ engine, weights, kvCache }) => engine === 'vLLM' && weights === 'fp16' && kvCache === 'fp16',
);
const servers = Map.groupBy(rows, ({ gpu, gpus, model }) => `${gpus} x ${gpu}, ${model}`);
for (const [server, measured] of servers) {
  const { gpu: name, gpus, model: modelName } = measured[0];
  const gpu = findGpu(GPUS[name] ?? name);
  const { tables, measuredOn, engine } = await readOperatorTables(values.tables, gpu, 'vllm');
  const { profile } = tableProfile(tables, {
    ...{ gpu, measuredOn, model: findModel(modelName), weights: 'FP16', engine, overheads },
    parallel: { tensor: gpus, pipeline: 1, data: 1, expert: 1 },
    ...{ source: 'kernel tables', command: 'benchmarks/league/static-batches.ts' },
  });
  const isOverflowing = ({ batch, inputTokens, outputTokens }: StaticBatchRow) =>
    name === 'A100' && gpus === 1 && batch * (inputTokens + outputTokens) > 200_000;
  const errors = measured
    .filter((row) => !isOverflowing(row))
    .map((row) => ({ ...row, error: 100 * (simulateBatch(profile, 'FP16', row) / row.latencyS - 1) }));
  const byBatch = [...Map.groupBy(errors, ({ batch }) => batch)].map(
    ([batch, of]) => `batch ${batch}: ${mean(of.map(({ error }) => error)).toFixed(1)} %`,
  );
  const size = mean(errors.map(({ error }) => Math.abs(error)));
  console.log(`${server}: ${errors.length} rows, ${size.toFixed(1)} % (signed ${byBatch.join(', ')})`);
}
