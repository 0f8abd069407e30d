import { readFile } from 'node:fs/promises';
import { blocksOf, parseSlo } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { estimatedProfile, findGpu, findModel, listProfiles } from '@servegym/profiles';
import { drawLengths, type EngineProfile, RandomStream, type WeightPrecision } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { engineUsd, isPossible, vllmDefaults } from '../../packages/operators/src/search/candidate.ts';
import { measureLoad } from '../../packages/operators/src/search/load-point.ts';
import { findSustainedLoad, sustainedLoad } from '../../packages/operators/src/search/sustained-load.ts';
import { readCsv } from '../../packages/profiles/src/tables/read-csv.ts';
import { readResults, requestsOf } from '../fidelity/gpustack.ts';
import { benchmark, type Row, required, timed } from '../harness.ts';

/** Configurations that are bought first. */
const FIRST = 3;

/** A configuration by the USD of its tokens, measured and predicted. */
interface Priced {
  readonly name: string;
  readonly measured: number;
  readonly predicted: number;
}

export default benchmark({
  what: `Whether the first three configurations that the simulator calls cheapest hold the one that measurements call cheapest, on public results of \`--data FOLDER\` (docs/reference-data.md) that give a choice: a model and a load with more than three configurations.
gpustack's performance lab (Apache-2.0): engines, GPUs, precisions and flags, served as their commands say, with the mean lengths, outputs of ShareGPT exponential. A command counts where a shipped profile is of its model and GPUs.
MLPerf Inference v5.1: kinds of GPU, with the shipped profile, or one from data sheets, and the division over GPUs that serves a token for the least. Engines are not told apart, as there are no profiles of TensorRT-LLM and of ROCm's vLLM. Prompts of \`--input\` tokens are assumed, as their mean is not published. GPUs without a list price are left out. MLPerf results are open ones; the derived costs are not verified by MLCommons Association.`,
  options: { data: required, input: 256 },
  async *run({ data, input }) {
    for (const [source, read] of [
      ['gpustack', () => gpustackCases(data)],
      ['MLPerf v5.1', () => mlperfCases(data, input)],
    ] as const) {
      const { result: cases, cpuS } = await timed(read);
      // Those with a choice.
      const places = cases
        .filter(([, configurations]) => configurations.length > FIRST)
        .map(([name, configurations]) => ({ name, ...placeOf(configurations) }));
      for (const { name, configurations, place, extra, cheapest } of places)
        yield {
          case: `${source}: ${name}`,
          configurations,
          cheapest,
          'its place': place,
          'best of three costs more, %': 100 * extra,
        };
      yield summary(source, places, cpuS);
    }
  },
});

type Place = ReturnType<typeof placeOf>;

function summary(source: string, places: readonly Place[], cpuS: number): Row {
  const share = (holds: (place: Place) => boolean) => (100 * places.filter(holds).length) / places.length;
  return {
    ...{ source, cases: places.length },
    'by chance, %': 100 * mean(places.map(({ configurations }) => FIRST / configurations)),
    'among three, %': share(({ place }) => place <= FIRST),
    'first, %': share(({ place }) => place === 1),
    'best of three costs more, %': 100 * mean(places.map(({ extra }) => extra)),
    'CPU s': cpuS,
  };
}

/** Place, from 1, that the prediction gives to the measured cheapest, and what the best of the first three costs more. */
function placeOf(configurations: readonly Priced[]) {
  const [cheapest] = configurations.toSorted((a, b) => a.measured - b.measured);
  const ranked = configurations.toSorted((a, b) => a.predicted - b.predicted);
  const best = Math.min(...ranked.slice(0, FIRST).map(({ measured }) => measured));
  return {
    ...{ configurations: configurations.length, cheapest: cheapest.name },
    ...{ place: 1 + ranked.indexOf(cheapest), extra: best / cheapest.measured - 1 },
  };
}

/** A model and a load with its configurations. */
type Case = readonly [name: string, configurations: readonly Priced[]];

const LOAD = ['model', 'gpus', 'workload', 'num_prompts', 'max_concurrency', 'request_rate'] as const;
type Result = Awaited<ReturnType<typeof readResults<(typeof LOAD)[number]>>>[number];
/** Rates of gpustack's loads from which on all requests are at once, requests/s. */
const AT_ONCE = 1000;

/** Models and loads of gpustack by what an output token costs on each configuration. */
async function gpustackCases(data: string): Promise<Case[]> {
  const results = (await readResults(data, LOAD)).filter(({ row }) => {
    const rate = row.text('request_rate');
    const isSaturated = rate === '' || rate === 'inf' || Number(rate) >= AT_ONCE;
    return isSaturated && row.number('successful_requests') >= 0.9 * row.number('num_prompts');
  });
  const cases = Map.groupBy(results, ({ row }) =>
    [row.text('model').replace(/^.*\/|-FP8$/g, ''), row.text('workload'), row.text('num_prompts')].join(', '),
  );
  return [...cases].map(([name, own]) => {
    // Commands that the simulator does not tell apart are one configuration, at the best of what was measured.
    const alike = Map.groupBy(
      own.map((result) => ({ ...result, predicted: predictedUsd(result) })),
      ({ row, served, predicted }) =>
        [row.text('engine'), served.profile.name, served.settings.weights, predicted.toPrecision(9)].join(
          ' ',
        ),
    );
    const all = [...alike].map(([kind, same]): Priced => {
      const measured = same.map(
        ({ row, served }) =>
          (row.number('gpus') * served.profile.gpu.usdPerHour * row.number('duration_s')) /
          row.number('total_output_tokens'),
      );
      const { predicted } = same[0];
      return { name: kind.replace(/ \S+$/, ''), measured: Math.min(...measured), predicted };
    });
    return [name, all] as const;
  });
}

/** USD an hour over output tokens a second. */
function predictedUsd({ row, served }: Result): number {
  const requests = row.number('successful_requests');
  const concurrency = row.text('max_concurrency') === '' ? requests : row.number('max_concurrency');
  const output = row.number('total_output_tokens') / requests;
  const traffic = { ...blocksOf(requestsOf(row)), ...(concurrency < requests && { concurrency }) };
  const slo = parseSlo(concurrency < requests ? 'e2e_mean=1s' : 'e2e_p100=1s');
  const { profile, settings, engines } = served;
  const point = measureLoad(profile, settings, traffic, slo, { load: 1, seed: 0, replicas: engines });
  const tokensPerS = (concurrency * output) / (point.values[0] / 1000);
  return (row.number('gpus') * profile.gpu.usdPerHour) / tokensPerS;
}

export const MLPERF_COLUMNS = [
  ...(['accelerator', 'accelerators', 'weights', 'model', 'scenario', 'division', 'tokens_per_s'] as const),
  ...(['output_tokens_per_sample', 'tokens_over_samples', 'ttft_limit_ms', 'tpot_limit_ms'] as const),
] as const;
type MlperfRow = ReturnType<typeof readCsv<(typeof MLPERF_COLUMNS)[number]>>[number];
/** Models of the tasks; the 70B of Llama 2 has the shape of that of Llama 3, but for its vocabulary. */
export const TASKS: Readonly<Record<string, string>> = {
  'llama2-70b-99': 'Llama-3-70B',
  'llama3.1-8b': 'Llama-3-8B',
  'mixtral-8x7b': 'Mixtral-8x7B',
};
export const PRECISIONS: Readonly<Record<string, WeightPrecision>> = { fp8: 'FP8', fp4: 'NVFP4' };
/** Divisions of a model over GPUs that are tried. */
const TENSOR = [1, 2, 4, 8];
const REQUESTS = 1000;

/** Tasks and scenarios of MLPerf by what a token costs on each kind of GPU. */
async function mlperfCases(data: string, input: number): Promise<Case[]> {
  const rows = await readMlperf(data, MLPERF_COLUMNS);
  const cases = Map.groupBy(rows, (row) => `${row.text('model')}, ${row.text('scenario')}`);
  return [...cases].map(([name, own]) => {
    const kinds = Map.groupBy(own, (row) => `${row.text('accelerator')} ${row.text('weights')}`);
    const all = [...kinds].map(([kind, same]): Priced => {
      const profiles = profilesOf(same[0]);
      const usd = profiles[0]?.gpu.usdPerHour || Number.NaN;
      const each = same.map((row) => (usd * row.number('accelerators')) / row.number('tokens_per_s'));
      const costs = profiles.map((profile) => engineUsd(profile) / tokensPerS(profile, same[0], input));
      return { name: kind, measured: Math.min(...each), predicted: Math.min(...costs) };
    });
    return [name, all.filter(({ measured }) => measured > 0)] as const;
  });
}

/** Results of the closed division with a known model. */
export async function readMlperf<const Column extends string>(data: string, columns: readonly Column[]) {
  const files = findReferenceFiles(data, REFERENCE_DATA.mlperf);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  return texts
    .flatMap((text, i) => readCsv(text, files[i], [...columns, 'division', 'model']))
    .filter((row) => row.text('division') === 'closed' && row.text('model') in TASKS);
}

/** Profiles of a result's GPU and model, shipped or else from data sheets, that hold its weights. */
export function profilesOf(row: MlperfRow): EngineProfile[] {
  const name = row.text('accelerator');
  const precision = PRECISIONS[row.text('weights')];
  const model = findModel(TASKS[row.text('model')]);
  return TENSOR.flatMap((count) => {
    const isSame = ({ gpu, model: { name: of }, parallel }: EngineProfile) =>
      gpu.name.toLowerCase() === name && gpu.count === count && of === model.name && !parallel?.expert;
    try {
      return listProfiles().find(isSame) ?? estimatedProfile(findGpu(name), model, count);
    } catch {
      // The GPU is not known, or the model does not fit.
      return [];
    }
  }).filter((profile) => {
    const weights = profile.weights[precision] && precision;
    return weights !== undefined && isPossible(profile, { ...vllmDefaults(profile), weights });
  });
}

/** Output tokens a second of a result's load; of a Poisson process at the most that keeps both limits at p99. Lengths spread by a factor of two. */
function tokensPerS(profile: EngineProfile, row: MlperfRow, input: number): number {
  const candidate = { ...vllmDefaults(profile), weights: PRECISIONS[row.text('weights')] };
  const output = Number(row.text('output_tokens_per_sample') || row.text('tokens_over_samples'));
  const [inputTokens, outputTokens] = [input, output].map((mean) => Math.round((4 / 3) * mean));
  const lengths = drawLengths({ requests: REQUESTS, inputTokens, outputTokens, range: 0.5 });
  const at = (slo: ReturnType<typeof parseSlo>, arrivalMs: Float64Array) => (load: number) =>
    measureLoad(profile, candidate, blocksOf({ ...lengths, arrivalMs }), slo, { load, seed: 0 });
  if (row.text('scenario') === 'Offline')
    return (REQUESTS * output) / (at(parseSlo('e2e_p99=1s'), new Float64Array(REQUESTS))(1).values[0] / 1000);
  const slo = parseSlo(`ttft_p99=${row.number('ttft_limit_ms')}ms,tpot_p99=${row.number('tpot_limit_ms')}ms`);
  const random = new RandomStream(0, 'mlperf');
  let now = 0;
  const arrivalMs = Float64Array.from({ length: REQUESTS }, () => (now += random.exponential(1000)));
  const search = { guess: 4, step: 2, tolerance: 1.03 };
  return output * sustainedLoad(findSustainedLoad(at(slo, arrivalMs), slo, search), slo);
}
