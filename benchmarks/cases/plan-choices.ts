import { readFile } from 'node:fs/promises';
import { parseSlo } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { estimatedProfile, findGpu, findModel, listProfiles } from '@servegym/profiles';
import { drawLengths, type EngineProfile, RandomStream, type WeightPrecision } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { type Candidate, isPossible, vllmDefaults } from '../../packages/operators/src/search/candidate.ts';
import { measureLoad } from '../../packages/operators/src/search/load-point.ts';
import { findSustainedLoad, sustainedLoad } from '../../packages/operators/src/search/sustained-load.ts';
import { readCsv } from '../../packages/profiles/src/tables/read-csv.ts';
import { blocks, readResults } from '../fidelity/gpustack.ts';
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
gpustack's performance lab (Apache-2.0): engines, GPUs, precisions and flags, served as their commands say, with the mean lengths. A command counts where a shipped profile is of its model and GPUs.
MLPerf Inference v5.1: kinds of GPU, with the shipped profile, or one from data sheets, and the division over GPUs that serves a token for the least. Engines are not told apart, as there are no profiles of TensorRT-LLM and of ROCm's vLLM. Prompts of \`--input\` tokens are assumed, as their mean is not published. GPUs without a list price are left out. MLPerf results are open ones; the derived costs are not verified by MLCommons Association.`,
  options: { data: required, input: 256 },
  async *run({ data, input }) {
    for (const [source, read] of [
      ['gpustack', () => gpustackCases(data)],
      ['MLPerf v5.1', () => mlperfCases(data, input)],
    ] as const) {
      const { result: cases, cpuS } = await timed(read);
      const places = [...cases].map(([name, configurations]) => ({ name, ...placeOf(configurations) }));
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

/** Cases with a choice. */
function withChoice(cases: ReadonlyMap<string, readonly Priced[]>): ReadonlyMap<string, readonly Priced[]> {
  return new Map([...cases].filter(([, configurations]) => configurations.length > FIRST));
}

const LOAD = [
  'model',
  'weights',
  'gpus',
  'workload',
  'num_prompts',
  'max_concurrency',
  'request_rate',
] as const;
/** Rates of gpustack's loads from which on all requests are at once, requests/s. */
const AT_ONCE = 1000;

/** Models and loads of gpustack by what an output token costs on each configuration. */
async function gpustackCases(data: string): Promise<ReadonlyMap<string, readonly Priced[]>> {
  const results = (await readResults(data, LOAD)).filter(({ row }) => {
    const rate = row.text('request_rate');
    const isSaturated = rate === '' || rate === 'inf' || Number(rate) >= AT_ONCE;
    return isSaturated && row.number('successful_requests') >= 0.9 * row.number('num_prompts');
  });
  const cases = Map.groupBy(results, ({ row }) =>
    [row.text('model').replace(/^.*\/|-FP8$/g, ''), row.text('workload'), row.text('num_prompts')].join(', '),
  );
  return withChoice(
    new Map(
      [...cases].map(([name, own]) => {
        // Commands that the simulator does not tell apart are one configuration, at the best of what was measured.
        const alike = Map.groupBy(
          own.map((result) => ({ ...result, predicted: predictedUsd(result) })),
          ({ served: { profile }, predicted, row }) =>
            `${row.text('engine')} ${profile.name} ${predicted.toPrecision(9)}`,
        );
        const priced = [...alike.values()].map((rows): Priced => {
          const measured = rows.map(({ row, served: { profile } }) => {
            const tokens = row.number('total_output_tokens') / row.number('duration_s');
            return (row.number('gpus') * profile.gpu.usdPerHour) / tokens;
          });
          const [{ row, served, predicted }] = rows;
          const kind = [row.text('engine'), served.profile.name, served.settings.weights].join(' ');
          return { name: kind, measured: Math.min(...measured), predicted };
        });
        return [name, priced];
      }),
    ),
  );
}

/** USD an hour over output tokens a second, with the mean lengths of the load. */
function predictedUsd({
  row,
  served,
}: Awaited<ReturnType<typeof readResults<(typeof LOAD)[number]>>>[number]): number {
  const requests = row.number('successful_requests');
  const concurrency = row.text('max_concurrency') === '' ? requests : row.number('max_concurrency');
  const [input, output] = (['total_input_tokens', 'total_output_tokens'] as const).map((of) =>
    Math.round(row.number(of) / requests),
  );
  const traffic = { ...blocks(requests, input, output), ...(concurrency < requests && { concurrency }) };
  const slo = parseSlo(concurrency < requests ? 'e2e_mean=1s' : 'e2e_p99=1s');
  const { profile, settings, engines } = served;
  const point = measureLoad(profile, settings, traffic, slo, { load: 1, seed: 0, replicas: engines });
  const tokensPerS = (concurrency * output) / (point.values[0] / 1000);
  return (row.number('gpus') * profile.gpu.usdPerHour) / tokensPerS;
}

const RESULTS = [
  'accelerator',
  'accelerators',
  'weights',
  'model',
  'scenario',
  'division',
  'tokens_per_s',
  'output_tokens_per_sample',
  'tokens_over_samples',
  'ttft_limit_ms',
  'tpot_limit_ms',
] as const;
/** Models of the tasks; the 70B of Llama 2 has the shape of that of Llama 3, but for its vocabulary. */
const TASKS: Readonly<Record<string, string>> = {
  'llama2-70b-99': 'Llama-3-70B',
  'llama3.1-8b': 'Llama-3-8B',
  'mixtral-8x7b': 'Mixtral-8x7B',
};
const PRECISIONS: Readonly<Record<string, WeightPrecision>> = { fp8: 'FP8', fp4: 'NVFP4', mxfp4: 'MXFP4' };
/** Divisions of a model over GPUs that are tried. */
const TENSOR = [1, 2, 4, 8];
const REQUESTS = 1000;

/** Tasks and scenarios of MLPerf by what a token costs on each kind of GPU. */
async function mlperfCases(data: string, input: number): Promise<ReadonlyMap<string, readonly Priced[]>> {
  const { mlperf } = REFERENCE_DATA;
  const files = findReferenceFiles(data, mlperf);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  const rows = texts.flatMap((text, i) => readCsv(text, files[i], RESULTS));
  const cases = Map.groupBy(
    rows.filter(
      (row) =>
        row.text('division') === 'closed' && row.text('model') in TASKS && pricedGpu(row.text('accelerator')),
    ),
    (row) => `${row.text('model')}, ${row.text('scenario')}`,
  );
  const priced = [...cases].map(([name, own]) => {
    const kinds = Map.groupBy(own, (row) => `${row.text('accelerator')} ${row.text('weights')}`);
    const all = [...kinds].map(([kind, repeats]): Priced => {
      const gpu = pricedGpu(repeats[0].text('accelerator'))!;
      const each = repeats.map(
        (row) => gpu.usdPerHour / (row.number('tokens_per_s') / row.number('accelerators')),
      );
      return { name: kind, measured: Math.min(...each), predicted: mlperfUsd(repeats[0], input) };
    });
    return [name, all.filter(({ predicted }) => Number.isFinite(predicted))] as const;
  });
  return withChoice(new Map(priced));
}

function pricedGpu(name: string) {
  try {
    const gpu = findGpu(name);
    return gpu.usdPerHour > 0 && gpu.name.toLowerCase() === name ? gpu : undefined;
  } catch {
    return undefined;
  }
}

/** USD an hour over tokens a second at the division that serves a token for the least. */
function mlperfUsd(row: ReturnType<typeof readCsv<(typeof RESULTS)[number]>>[number], input: number): number {
  const gpu = pricedGpu(row.text('accelerator'))!;
  const model = findModel(TASKS[row.text('model')]);
  const precision = PRECISIONS[row.text('weights')];
  const output = Math.round(Number(row.text('output_tokens_per_sample') || row.text('tokens_over_samples')));
  const costs = TENSOR.map((count) => {
    const profile =
      listProfiles().find(
        (each) =>
          each.gpu.name === gpu.name &&
          each.gpu.count === count &&
          each.model.name === model.name &&
          !each.parallel?.expert,
      ) ?? estimatedOrNone(gpu, model, count);
    if (profile?.weights[precision] === undefined) return Number.POSITIVE_INFINITY;
    const candidate = { ...vllmDefaults(profile), weights: precision };
    if (!isPossible(profile, candidate)) return Number.POSITIVE_INFINITY;
    const tokensPerS =
      row.text('scenario') === 'Offline'
        ? offlineTokens(profile, candidate, input, output)
        : output *
          sustained(profile, candidate, input, output, [
            row.number('ttft_limit_ms'),
            row.number('tpot_limit_ms'),
          ]);
    return (count * gpu.usdPerHour) / tokensPerS;
  });
  return Math.min(...costs);
}

function estimatedOrNone(...of: Parameters<typeof estimatedProfile>): EngineProfile | undefined {
  try {
    return estimatedProfile(...of);
  } catch {
    return undefined;
  }
}

function offlineTokens(profile: EngineProfile, candidate: Candidate, input: number, output: number): number {
  const slo = parseSlo('e2e_p99=1s');
  const { values } = measureLoad(profile, candidate, blocks(2 * REQUESTS, input, output), slo, {
    load: 1,
    seed: 0,
  });
  return (2 * REQUESTS * output) / (values[0] / 1000);
}

/** Requests/s of a Poisson process that keep both limits at p99. Lengths are spread as widely as a factor of three. */
function sustained(
  profile: EngineProfile,
  candidate: Candidate,
  input: number,
  output: number,
  [ttftMs, tpotMs]: readonly number[],
): number {
  const slo = parseSlo(`ttft_p99=${ttftMs}ms,tpot_p99=${tpotMs}ms`);
  const random = new RandomStream(0, 'mlperf');
  let now = 0;
  const arrivalMs = Float64Array.from({ length: REQUESTS }, () => (now += random.exponential(1000)));
  const trace = {
    ...drawLengths({
      requests: REQUESTS,
      inputTokens: 1.33 * input,
      outputTokens: 1.33 * output,
      range: 0.5,
    }),
    arrivalMs,
  };
  const traffic = { ...blocks(REQUESTS, input, output), trace };
  const points = findSustainedLoad(
    (load) => measureLoad(profile, candidate, traffic, slo, { load, seed: 0 }),
    slo,
    { guess: 4, step: 2, tolerance: 1.03 },
  );
  return sustainedLoad(points, slo);
}
