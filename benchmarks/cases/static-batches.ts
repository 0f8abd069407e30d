import { readFile } from 'node:fs/promises';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import {
  findGpu,
  findModel,
  parseStaticBatches,
  readOperatorTables,
  type StaticBatchRow,
  statedOverheads,
  tableProfile,
} from '@servegym/profiles';
import { mean } from '@servegym/simulator/statistics';
import { simulateBatch } from '../../packages/profiles/src/fits/simulated-batch.ts';
import { benchmark } from '../harness.ts';

const LARGEST_BATCH = 64;
/** Memory sizes of the GPUs that were measured. */
const GPUS: Readonly<Record<string, string>> = { A100: 'a100-40gb', H100: 'h100-80gb', GH200: 'gh200-96gb' };

/** Versions of vLLM, by the scripts beside the measurements: those for A100 ask for the libraries of 0.6, those for H100 are older. */
const VERSIONS: Readonly<Record<string, string>> = { A100: '0.6.2', H100: '0.5.4', GH200: '0.5.4' };

export default benchmark({
  what: "Static batches of LLM-Inference-Bench (16-bit weights, vLLM) predicted from kernel tables alone, with the engine's time of the version that it was. Batches that overflow the KV pool are left out. `signed`: mean error of each batch size; a context token: by how much it lengthens an iteration of the largest batch, measured and predicted.",
  options: { data: 'reference-data', tables: 'aiconfigurator_core' },
  async *run({ data, tables: folder }) {
    const [file] = findReferenceFiles(data, [REFERENCE_DATA.staticBatches]);
    const rows = parseStaticBatches(await readFile(file, 'utf8'), file).filter(
      ({ engine, weights, kvCache }) => engine === 'vLLM' && weights === 'fp16' && kvCache === 'fp16',
    );
    const all: number[] = [];
    const servers = Map.groupBy(rows, ({ gpu, gpus, model }) => `${gpus} x ${gpu}, ${model}`);
    for (const [server, measured] of servers) {
      const { gpu: name, gpus, model: modelName } = measured[0];
      const gpu = findGpu(GPUS[name] ?? name);
      const { tables, measuredOn, engine } = await readOperatorTables(folder, gpu, 'vllm');
      const { profile } = tableProfile(tables, {
        ...{ gpu, measuredOn, model: findModel(modelName), weights: 'FP16', engine },
        ...{
          overheads: statedOverheads('vllm', VERSIONS[name]).values,
          source: 'kernel tables',
          command: 'run.ts static-batches',
        },
        parallel: { tensor: gpus, pipeline: 1, data: 1, expert: 1 },
      });
      const isOverflowing = ({ batch, inputTokens, outputTokens }: StaticBatchRow) =>
        name === 'A100' && gpus === 1 && batch * (inputTokens + outputTokens) > 200_000;
      const errors = measured
        .filter((row) => !isOverflowing(row))
        .map((row) => ({ ...row, predictedS: simulateBatch(profile, 'FP16', row) }))
        .map((row) => ({ ...row, error: 100 * (row.predictedS / row.latencyS - 1) }));
      all.push(...errors.map(({ error }) => Math.abs(error)));
      const byBatch = [...Map.groupBy(errors, ({ batch }) => batch)].map(
        ([batch, of]) => `${batch}: ${mean(of.map(({ error }) => error)).toFixed(1)} %`,
      );
      const largest = errors.filter(({ batch }) => batch === LARGEST_BATCH);
      yield {
        server,
        rows: errors.length,
        'error, %': mean(errors.map(({ error }) => Math.abs(error))),
        signed: byBatch.join(', '),
        'a context token, ns': contextNs(largest, 'latencyS'),
        'predicted, ns': contextNs(largest, 'predictedS'),
      };
    }
    yield { server: 'all', rows: all.length, 'error, %': mean(all) };
  },
});

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
