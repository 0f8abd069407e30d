import { readFile } from 'node:fs/promises';
import { blocksOf, type Candidate, type Deployment } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { estimatedProfile, findGpu, findModel, listProfiles } from '@servegym/profiles';
import {
  closedBatch,
  drawLengths,
  type EngineProfile,
  kvMemoryGiB,
  poissonTrace,
  RandomStream,
  type Trace,
  type WeightPrecision,
} from '@servegym/simulator';
import { mean, quantile } from '@servegym/simulator/statistics';
import { vllmDefaults } from '../../packages/operators/src/search/candidate.ts';
import { serveTraffic } from '../../packages/operators/src/search/load-point.ts';
import { type CsvRow, readCsv } from '../../packages/profiles/src/tables/read-csv.ts';
import { readResults } from '../fidelity/gpustack.ts';
import { benchmark, required } from '../harness.ts';

export default benchmark({
  what: `Output tokens a second, TTFT and TPOT of saturated servers in \`--data FOLDER\` (docs/reference-data.md), by GPU and engine: errors, positive when the simulator says more.
gpustack's performance lab (Apache-2.0): all requests at once with the mean lengths, served as the printed commands say, on shipped profiles.
MLPerf Inference v5.1 (not verified by MLCommons Association): prompt lengths are not published, so each row is predicted with \`--inputs\` tokens; outputs are uniform from 0.4 to 1.6 of the published mean. An engine takes the fewest GPUs whose memory is left a third for KV, and its share of the load, with 1,024 sequences and a budget of 8,192 tokens: choices, as no flags are published. Profiles: shipped ones, else data sheets. TensorRT-LLM is another engine than the simulated one.`,
  options: { data: required, inputs: [250, 500] },
  async *run({ data, inputs }) {
    const lab = await labAnswers(data);
    yield* byServer(lab, 'gpustack');
    const rows = await mlperfRows(data);
    for (const input of inputs)
      yield* byServer(
        rows.flatMap((row) => mlperfAnswer(row, input)),
        `MLPerf v5.1, ${input} tokens in`,
      );
    yield `${rows.length} results of MLPerf; without a profile of the precision or with unknown prompts: ${rows.filter((row) => mlperfAnswer(row, inputs[0]).length === 0).length}`;
  },
});

/** Errors of a server, relative; `undefined` where nothing was measured. */
interface Answer {
  readonly server: string;
  readonly status: EngineProfile['status'];
  readonly throughput?: number;
  readonly ttft?: number;
  readonly tpot?: number;
}

function* byServer(answers: readonly Answer[], source: string) {
  const servers = Map.groupBy(answers, ({ server, status }) => `${server} (${status})`);
  for (const [server, own] of [...servers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const errors = (of: 'throughput' | 'ttft' | 'tpot') => own.flatMap((answer) => answer[of] ?? []);
    const median = (values: readonly number[]) =>
      values.length === 0
        ? undefined
        : 100 *
          quantile(
            values.toSorted((a, b) => a - b),
            0.5,
          );
    const absolute = (of: Parameters<typeof errors>[0]) => median(errors(of).map(Math.abs));
    yield {
      source,
      'GPU, engine, scenario (profile)': server,
      results: own.length,
      'tokens/s, median error, %': absolute('throughput'),
      signed: median(errors('throughput')),
      'TTFT mean, %': absolute('ttft'),
      'TPOT mean, %': absolute('tpot'),
    };
  }
}

const LAB = [
  ...(['generated_tokens_per_s', 'ttft_mean_ms', 'dataset', 'request_rate', 'max_concurrency'] as const),
] as const;
const TOTALS = ['successful_requests', 'total_input_tokens', 'total_output_tokens'] as const;

/** Lengths of ShareGPT are far from equal: outputs are drawn from an exponential distribution with the mean, a choice. */
function spread(trace: Trace): Trace {
  const random = new RandomStream(0, 'lengths');
  return {
    ...trace,
    outputTokens: trace.outputTokens.map((tokens) => Math.max(1, Math.round(random.exponential(tokens)))),
  };
}

async function labAnswers(data: string): Promise<Answer[]> {
  return (await readResults(data, LAB)).flatMap(({ row, served }) => {
    const isSaturated = row.text('request_rate') === 'inf' && row.text('max_concurrency') === '';
    const measured = Number(row.text('generated_tokens_per_s'));
    if (!isSaturated || !(measured > 0)) return [];
    const [requests, input, output] = TOTALS.map((column) => row.number(column));
    const equal = closedBatch(requests, Math.round(input / requests), Math.round(output / requests));
    const answer = answerOf(served, row.text('dataset') === 'sharegpt' ? spread(equal) : equal);
    const ttftMs = Number(row.text('ttft_mean_ms'));
    return {
      server: `${row.text('gpu')}, ${row.text('engine')}`,
      status: served.profile.weights[served.settings.weights]!.status,
      throughput: answer.tokensPerS / measured - 1,
      ...(ttftMs > 0 && { ttft: answer.ttftMs / ttftMs - 1 }),
    };
  });
}

type Served = Pick<Deployment, 'profile' | 'settings' | 'kvBlocks'> & { readonly engines: number };

function answerOf({ profile, settings, engines, kvBlocks }: Served, trace: Trace) {
  const { ids, e2eMs, ttftMs, tpotMs } = serveTraffic(profile, settings, blocksOf(trace), {
    ...{ load: 1, seed: 0, replicas: engines, kvBlocks },
  });
  const endMs = e2eMs.reduce((last, ms, i) => Math.max(last, trace.arrivalMs[ids[i]] + ms), 0);
  const tokens = trace.outputTokens.reduce((sum, each) => sum + each, 0);
  return {
    tokensPerS: (1000 * tokens) / endMs,
    ttftMs: mean(ttftMs),
    tpotMs: mean(tpotMs.filter((ms) => ms > 0)),
  };
}

const COLUMNS = [
  ...(['accelerator', 'accelerators', 'engine', 'weights', 'model', 'used_model', 'scenario'] as const),
  ...([
    'submitter',
    'target_qps',
    'tokens_per_s',
    'output_tokens_per_sample',
    'ttft_mean_ms',
    'tpot_mean_ms',
  ] as const),
] as const;
type MlperfRow = CsvRow<(typeof COLUMNS)[number]>;

/** Results that are listed once: both accuracies of Llama-2-70B are often one run. */
async function mlperfRows(data: string): Promise<MlperfRow[]> {
  const files = findReferenceFiles(data, REFERENCE_DATA.mlperf);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  const rows = texts.flatMap((content, i) => readCsv(content, files[i], COLUMNS));
  const keys = ['submitter', 'accelerator', 'model', 'scenario', 'tokens_per_s'] as const;
  const key = (row: MlperfRow) => keys.map((column) => row.text(column).replace(/-99(\.9)?$/, '')).join();
  return [...new Map(rows.map((row) => [key(row), row])).values()];
}

/** Models by the names of the tasks. The others have prompts that nothing bounds. */
const MODELS: readonly (readonly [task: RegExp, model: string])[] = [
  [/^llama2-70b-99/, 'llama-2-70b'],
  [/^llama3\.1-8b/, 'llama-3-8b'],
  [/^mixtral-8x7b$/, 'mixtral-8x7b'],
];
const WEIGHTS: Readonly<Record<string, WeightPrecision>> = {
  fp8: 'FP8',
  fp4: 'NVFP4',
  fp16: 'FP16',
  bf16: 'FP16',
  UINT4: 'INT4',
};
const MOST_GPUS = 8;
const LEAST_KV_SHARE = 1 / 3;
const SETTINGS = { maxNumSeqs: 1024, maxNumBatchedTokens: 8192 };
/** Requests of an offline run, and seconds of the others. */
const REQUESTS = 2000;
const SECONDS = 120;

function mlperfAnswer(row: MlperfRow, inputTokens: number): Answer[] {
  const model = MODELS.find(([task]) => task.test(row.text('model')))?.[1];
  const weights = WEIGHTS[row.text('weights')];
  const isOther = row.text('used_model') !== row.text('model');
  const profile = model && weights && !isOther && smallestProfile(row.text('accelerator'), model, weights);
  if (!profile) return [];
  const settings: Candidate = { ...vllmDefaults(profile), ...SETTINGS, weights };
  const engines = row.number('accelerators') / profile.gpu.count;
  const scenario = row.text('scenario');
  const isOffline = scenario === 'Offline';
  const needed = [
    'output_tokens_per_sample',
    ...(isOffline ? [] : (['target_qps', 'tpot_mean_ms'] as const)),
  ] as const;
  if (needed.some((column) => row.text(column) === '')) return [];
  const lengths = {
    inputTokens,
    outputTokens: Math.round(1.6 * row.number('output_tokens_per_sample')),
    range: 0.25,
  };
  const trace = isOffline
    ? drawLengths({ ...lengths, inputTokens: inputTokens / 0.625, requests: REQUESTS })
    : poissonTrace(
        { ...lengths, inputTokens: inputTokens / 0.625 },
        row.number('target_qps') / engines,
        SECONDS,
        0,
      );
  const { tokensPerS, ttftMs, tpotMs } = answerOf(
    { profile, settings, engines: 1, kvBlocks: undefined },
    trace,
  );
  const of = (column: 'ttft_mean_ms' | 'tpot_mean_ms', ms: number) => ms / row.number(column) - 1;
  return [
    {
      server: `${row.text('accelerator')}, ${row.text('engine')}, ${scenario}`,
      status: profile.weights[weights]!.status,
      ...(isOffline
        ? { throughput: (engines * tokensPerS) / row.number('tokens_per_s') - 1 }
        : { ttft: of('ttft_mean_ms', ttftMs), tpot: of('tpot_mean_ms', tpotMs) }),
    },
  ];
}

/** Profile of the fewest GPUs that leave room for KV beside the weights. */
function smallestProfile(
  gpuName: string,
  modelName: string,
  weights: WeightPrecision,
): EngineProfile | undefined {
  const known = findModel(modelName);
  // Every model can be had in NVFP4, whoever has published it.
  const model = { ...known, checkpoints: { ...known.checkpoints, NVFP4: known.id } };
  for (let count = 1; count <= MOST_GPUS; count *= 2) {
    const shipped = listProfiles().find(
      ({ name, gpu, parallel }) =>
        name.startsWith(`${gpuName}-${model.id}`) && gpu.count === count && parallel === undefined,
    );
    try {
      const profile = shipped?.weights[weights] ? shipped : estimatedProfile(findGpu(gpuName), model, count);
      const hasRoom = kvMemoryGiB(profile, weights, false) >= LEAST_KV_SHARE * profile.gpu.memoryGiB;
      if (profile.weights[weights] && hasRoom) return profile;
    } catch {
      // The weights do not fit, or the GPU is not known.
    }
  }
  return undefined;
}
