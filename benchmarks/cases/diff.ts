import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { blocksOf, type Candidate, compareDeployments, type Deployment, parseSlo } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import {
  estimatedProfile,
  findGpu,
  findModel,
  findProfile,
  listProfiles,
  modelFromConfig,
  parseStaticBatches,
  type StaticBatchRow,
  vllmConstants,
} from '@servegym/profiles';
import { closedBatch, type EngineProfile, repeatTrace, type Trace } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { type ChangeVerdict, changeVerdict } from '../../packages/operators/src/diff/compare-deployments.ts';
import { vllmDefaults } from '../../packages/operators/src/search/candidate.ts';
import { errorOfRatio, PROFILE_ERRORS } from '../../packages/operators/src/search/profile-error.ts';
import { type CsvRow, readCsv } from '../../packages/profiles/src/tables/read-csv.ts';
import { readResults, requestsOf } from '../fidelity/gpustack.ts';
import type { OperatingPoint, PointRow } from '../fidelity/operating-points.ts';
import { benchmark, quantile, required, text, timed } from '../harness.ts';
import configs from '../rtx5090-models.json' with { type: 'json' };

export default benchmark({
  what: `Whether \`servegym diff\` is right about measured pairs of \`--data FOLDER\` (docs/reference-data.md) that differ in one thing, and how long it takes for 20,000 requests.
Token budgets: mean TTFT and TPOT of vLLM 0.22 on an RTX 5090 (TimoSaemann/ppas-vllm, Apache-2.0) with two static budgets and the same arrivals, which Python draws again (\`SERVEGYM_PYTHON\`, else \`python3\`), with profiles estimated from data sheets.
Static batches: latency of whole batches on vLLM (LLM-Inference-Bench, BSD-3-Clause) that differ in the GPU, their number, or the precision of weights or KV cache. Once with the shipped profiles, which were fitted to these rows, and once with profiles estimated from data sheets.
Flags: output tokens a second of gpustack's performance lab (Apache-2.0), two results of a page that differ in one setting, served as their commands say, with the mean lengths, outputs of ShareGPT exponential, all requests at once or as many as the load generator kept in flight. On shipped profiles, or with \`--tables FOLDER\`, the unpacked package aiconfigurator-core, on the kernel times of the engine and version that the page names.
Operating points: open rows of NVIDIA's aiconfigurator-core with equal model, lengths and concurrency that differ in the engine, the GPU, the precision or the division over GPUs. \`--points FILE\` is made by \`run.ts fidelity --tables FOLDER --results FILE\`, whose answers come from kernel tables; the intervals are those of the profiles' errors alone. \`--misses\` lists the pairs whose sign is wrong.`,
  options: { data: required, tables: text, points: text, misses: false },
  async *run({ data, tables, points, misses }) {
    const batches = await readStaticBatches(data);
    const pairs = [
      ...tokenBudgets(readRuns(data)),
      ...staticBatches(batches),
      ...(await flags(data, tables)),
      ...(points === undefined ? [] : operatingPoints(JSON.parse(await readFile(points, 'utf8')).points)),
    ];
    for (const all of grouped(pairs, ({ figure }) => figure)) {
      const [{ figure }] = all;
      const different = all.filter(({ measured }) => Math.abs(measured - 1) > APART);
      // Pairs of which `diff` says that it does not simulate what they differ in.
      const apart = different.filter(({ untold }) => !untold);
      const told = apart.filter(({ verdict }) => verdict !== 'too close to tell');
      const close = all.filter(({ measured }) => Math.abs(measured - 1) < CLOSE);
      const unsure = close.filter(({ verdict }) => verdict === 'too close to tell');
      const judged = all.filter(({ isHeld }) => isHeld !== undefined);
      const held = judged.filter(({ isHeld }) => isHeld);
      yield {
        pairs: figure,
        'differ by > 5 %': different.length,
        ...{ declined: different.length - apart.length, 'right signs': apart.filter(isRight).length },
        'sign is right, %': percent(apart.filter(isRight), apart),
        'a verdict is given, %': percent(told, apart),
        'right of these, %': percent(told.filter(isRight), told),
        'differ by < 2 %': close.length,
        'too close to tell, %': percent(unsure, close),
        'interval holds the measured ratio, %': judged.length > 0 ? percent(held, judged) : null,
      };
      for (const same of figure === 'flags' ? grouped(different, ({ setting }) => setting) : []) {
        const answered = same.filter(({ untold }) => !untold);
        yield {
          ...{ setting: same[0].setting!, 'differ by > 5 %': same.length },
          'sign is right': answered.filter(isRight).length,
          wrong: answered.filter((pair) => !isRight(pair)).length,
          declined: same.length - answered.length,
        };
      }
      if (!misses) continue;
      for (const { name, measured, simulated, verdict } of apart.filter((pair) => !isRight(pair)))
        yield `${figure}: ${name}: ${measured.toFixed(3)}, simulated ${simulated.toFixed(3)}, ${verdict}`;
    }
    yield estimatedError(batches);
    const { trace } = await readTrace(findReferenceFiles(data, [REFERENCE_DATA.azureConversation])[0], {});
    const profile = findProfile('h100-80gb-llama-3-8b');
    const { result, wallS } = await timed(() =>
      compareDeployments(
        deployed(profile),
        deployed(profile, { maxNumSeqs: 64 }),
        blocksOf(repeatTrace(trace, 20_000)),
        parseSlo('ttft_p99=1s,tpot_p99=50ms'),
        0,
      ),
    );
    yield { 'requests compared': result.requests, s: wallS };
  },
});

const percent = (part: readonly Pair[], of: readonly Pair[]) => Math.round((100 * part.length) / of.length);
const isRight = ({ measured, simulated }: Pair) => Math.sign(measured - 1) === Math.sign(simulated - 1);

/** A figure measured on two sides, and what diff says of it. Ratios are of the second side over the first. */
interface Pair {
  readonly figure: string;
  readonly name: string;
  readonly measured: number;
  readonly simulated: number;
  readonly verdict: ChangeVerdict;
  /** Of commands that differ in one. */
  readonly setting?: string;
  /** Whether `diff` says that it does not simulate it. */
  readonly untold?: boolean;
  /** Whether the interval of the profiles' errors holds the measured ratio. */
  readonly isHeld?: boolean;
}

/** Pairs that differ by more, and by less, than which the bars are. */
const APART = 0.05;
const CLOSE = 0.02;

function pairsOf<Item>(items: readonly Item[]): (readonly [Item, Item])[] {
  return items.flatMap((a, i) => items.slice(i + 1).map((b) => [a, b] as const));
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => unknown): Item[][] {
  return [...Map.groupBy(items, (item) => JSON.stringify(keyOf(item))).values()];
}

function deployed(profile: EngineProfile, settings: Partial<Candidate> = {}): Deployment {
  return {
    ...{ name: profile.name, profile, engines: 1, notSimulated: [] },
    settings: { ...vllmDefaults(profile), ...settings },
  };
}

// Token budgets.

/** Pairs of static budgets with the same arrivals, with profiles from data sheets. */
function tokenBudgets(runs: readonly Run[]): Pair[] {
  const estimated = new Map(MODELS.map((model) => [model, estimatedOf(model)]));
  const loads = grouped(runs, (run) => [
    ...[run.file, modelOf(run), run.seed, run.phase_schedule],
    ...[run.configured_prompt_tokens, run.configured_output_tokens],
  ]);
  const slo = parseSlo('ttft_mean=1s,tpot_mean=50ms');
  return loads.flatMap((same) => {
    const [first] = same;
    const { configured_prompt_tokens: input, configured_output_tokens: output } = first;
    const trace: Trace = {
      ...closedBatch(first.num_requests, input, output),
      arrivalMs: Float64Array.from(arrivalsOf(first), (s) => 1000 * s),
    };
    const profile = estimated.get(modelOf(first))!;
    const served = (run: Run) =>
      deployed(profile, {
        ...{ maxNumBatchedTokens: run.max_num_batched_tokens, maxNumSeqs: run.max_num_seqs },
      });
    return pairsOf(same).flatMap(([a, b]) => {
      const { bounds } = compareDeployments(served(a), served(b), blocksOf(trace), slo, 0);
      const name = `${profile.model.name}, ${input} in, ${output} out, ${a.phase_schedule}, seed ${a.seed}: ${a.max_num_batched_tokens} -> ${b.max_num_batched_tokens}`;
      const measured = [b.avg_ttft / a.avg_ttft, b.avg_tpot / a.avg_tpot];
      return bounds.map(({ ratio, verdict }, t) => ({
        ...{ figure: `token budgets, ${t === 0 ? 'TTFT' : 'TPOT'}`, name, measured: measured[t] },
        ...{ simulated: ratio, verdict },
      }));
    });
  });
}

/** A run of the measurements, as far as it is read. */
interface Run {
  readonly file: string;
  readonly command: string;
  readonly phase_schedule: string;
  readonly configured_prompt_tokens: number;
  readonly configured_output_tokens: number;
  readonly seed: number;
  readonly num_requests: number;
  readonly config_name: string;
  readonly max_num_batched_tokens: number;
  readonly max_num_seqs: number;
  readonly avg_ttft: number;
  readonly avg_tpot: number;
}

/** SmolLM3 is a Llama but for the rotary embeddings that every fourth layer does without. */
const MODELS: readonly string[] = Object.keys(configs);

/** Runs with static budgets of `measured/vllm-0.22-rtx5090-token-budget.jsonl` in the folder of the reference data. */
function readRuns(data: string): Run[] {
  const file = join(data, 'measured/vllm-0.22-rtx5090-token-budget.jsonl');
  if (!existsSync(file)) throw new Error(`${file} is missing: see docs/reference-data.md`);
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines
    .filter((line) => line.includes('"file": "RTX5090_'))
    .map((line) => JSON.parse(line) as Run)
    .filter(({ config_name }) => !config_name.startsWith('ppas'));
}

function modelOf({ command }: Run): string {
  return command.split(' ')[2];
}

/** A profile from data sheets. */
function estimatedOf(model: string): EngineProfile {
  const config: Readonly<Record<string, object>> = configs;
  return estimatedProfile(
    findGpu('RTX 5090'),
    modelFromConfig(JSON.stringify(config[model]), model, 'config.json'),
    1,
  );
}

/** Arrivals of a run, s: exponential gaps of each phase from the generator that the measurements were drawn with, Python's. */
function arrivalsOf({ seed, phase_schedule, num_requests }: Run): number[] {
  const phases = phase_schedule.split(',').map((phase) => phase.split(':').map(Number));
  const draws = pythonDraws(seed);
  const arrivals: number[] = [];
  let begin = 0;
  let next = 0;
  for (const [duration, rate] of phases) {
    for (let at = begin; next < draws.length; ) {
      at -= Math.log(1 - draws[next++]) / rate;
      if (at >= begin + duration) break;
      arrivals.push(at);
    }
    begin += duration;
  }
  if (arrivals.length !== num_requests) {
    throw new Error(`expected ${num_requests} arrivals of seed ${seed}, drew ${arrivals.length}`);
  }
  return arrivals;
}

/** More than the arrivals of any run. */
const MOST_DRAWS = 1000;
const DRAWN = new Map<number, readonly number[]>();

function pythonDraws(seed: number): readonly number[] {
  const program = `import random; r = random.Random(${seed}); print([r.random() for _ in range(${MOST_DRAWS})])`;
  const draws =
    DRAWN.get(seed) ??
    JSON.parse(execFileSync(process.env.SERVEGYM_PYTHON ?? 'python3', ['-c', program], { encoding: 'utf8' }));
  DRAWN.set(seed, draws);
  return draws;
}

// Static batches.

const GPUS: Readonly<Record<string, string>> = { A100: 'A100-40GB', H100: 'H100-80GB', GH200: 'GH200-96GB' };

/** A batch on both sides. */
function compareBatch(a: Deployment, b: Deployment, { batch, inputTokens, outputTokens }: StaticBatchRow) {
  const traffic = blocksOf(closedBatch(batch, inputTokens, outputTokens));
  return compareDeployments(a, b, traffic, parseSlo('e2e_mean=1s'), 0).bounds[0];
}

const deployedBatch = (profile: EngineProfile, { weights }: StaticBatchRow) =>
  deployed(profile, { weights: weights === 'fp8' ? 'FP8' : 'FP16' });

function batchPairs(
  figure: string,
  rows: readonly StaticBatchRow[],
  profileOf: (row: StaticBatchRow) => EngineProfile | undefined,
): Pair[] {
  const known = rows.flatMap((row) => {
    const profile = profileOf(row);
    return profile === undefined ? [] : [{ row, served: deployedBatch(profile, row) }];
  });
  const conditions = ({ row }: (typeof known)[number]) => [
    ...[row.model, row.inputTokens, row.outputTokens, row.batch],
  ];
  const server = ({ gpu, gpus, weights, kvCache }: StaticBatchRow) => [gpu, gpus, weights, kvCache];
  return grouped(known, conditions).flatMap((same) =>
    pairsOf(same)
      .filter(([a, b]) => differences(server(a.row), server(b.row)) === 1)
      .map(([a, b]) => {
        const { batch, inputTokens } = a.row;
        const { ratio, verdict } = compareBatch(a.served, b.served, a.row);
        const name = `${a.row.model}, ${batch} x ${inputTokens}: ${server(a.row).join(' ')} -> ${server(b.row).join(' ')}`;
        return { figure, name, measured: b.row.latencyS / a.row.latencyS, simulated: ratio, verdict };
      }),
  );
}

const differences = (a: readonly unknown[], b: readonly unknown[]) =>
  a.filter((value, i) => value !== b[i]).length;

async function readStaticBatches(data: string): Promise<StaticBatchRow[]> {
  const [file] = findReferenceFiles(data, [REFERENCE_DATA.staticBatches]);
  return parseStaticBatches(await readFile(file, 'utf8'), file).filter(({ engine }) => engine === 'vLLM');
}

function staticBatches(rows: readonly StaticBatchRow[]): Pair[] {
  const shipped = listProfiles().filter(({ status }) => status === 'measured');
  return [
    ...batchPairs('static batches, shipped profiles', rows, ({ gpu, gpus, model, kvCache, weights }) =>
      kvCache === 'fp16' && weights === 'fp16'
        ? shipped.find(
            (profile) =>
              profile.gpu.name === GPUS[gpu] &&
              profile.gpu.count === gpus &&
              profile.model.name === findModel(model).name,
          )
        : undefined,
    ),
    ...batchPairs('static batches, estimated profiles', rows, estimatedOfBatch),
  ];
}

function estimatedOfBatch({ gpu, gpus, model, kvCache }: StaticBatchRow): EngineProfile {
  const cache = kvCache === 'fp8' ? 'FP8' : 'FP16';
  return estimatedProfile(findGpu(GPUS[gpu]), findModel(model), gpus, vllmConstants('0.5'), cache);
}

/** Errors of profiles from data sheets on the batches; the second is the `estimated` share of `PROFILE_ERRORS`. */
function estimatedError(rows: readonly StaticBatchRow[]): string {
  const errors = rows.map((row) => {
    const side = deployedBatch(estimatedOfBatch(row), row);
    return Math.abs(compareBatch(side, side, row).baseline / 1000 / row.latencyS - 1);
  });
  const shares = [mean(errors), quantile(errors, 0.9)].map((error) => (100 * error).toFixed(0));
  return `profiles from data sheets: mean error ${shares[0]} %, 90 % of them within ${shares[1]} %, on ${rows.length} static batches`;
}

// Flags.

const SETTING = ['page', 'workload', 'kind', 'setting', 'before_value', 'after_value'] as const;
const PAIR = [
  ...(['before', 'after', 'throughput_bound', 'output_throughput_change_pct', 'note'] as const),
  ...SETTING,
] as const;

/** Whether the throughput of a pair is not that of its arrivals, and its page does not contradict itself on what was served. */
function isCompared(pair: CsvRow<(typeof PAIR)[number]>): boolean {
  const isPair = pair.text('kind') !== 'repeat' && !/doubtful/.test(pair.text('note'));
  return pair.text('throughput_bound') === 'yes' && isPair;
}

/** Pairs of gpustack's results whose commands start a shipped profile, or one that the kernel `tables` have. */
async function flags(data: string, tables: string | undefined): Promise<Pair[]> {
  const [file] = findReferenceFiles(data, [REFERENCE_DATA.flagPairs]);
  const rows = readCsv(await readFile(file, 'utf8'), file, PAIR).filter(isCompared);
  const sides = new Set(rows.flatMap((row) => [row.text('before'), row.text('after')]));
  const known = await readResults(data, ['max_concurrency'], { tables, only: (id) => sides.has(id) });
  const slo = parseSlo('e2e_p100=1s');
  const compared = rows.flatMap((pair) => {
    const [before, after] = (['before', 'after'] as const).map((side) =>
      known.find(({ row }) => row.text('id') === pair.text(side)),
    );
    return before && after ? [{ pair, before, after }] : [];
  });
  const server = ({ served: { profile, settings, notSimulated } }: (typeof known)[number]) =>
    JSON.stringify([profile, settings, notSimulated]);
  const settingOf = (pair: (typeof rows)[number]) => SETTING.map((at) => pair.text(at));
  // Two results of one server are a repetition, and of one that was measured more than once the mean counts.
  const distinct = grouped(
    compared.filter(({ before, after }) => server(before) !== server(after)),
    ({ pair, before, after }) => [settingOf(pair), server(before), server(after)],
  );
  return distinct.map((repeats) => {
    const [{ pair, before, after }] = repeats;
    const trace = requestsOf(before.row);
    // Requests that the load generator holds back wait as those do that the engine lets wait.
    const [from, to] = [before, after].map(({ row, served }): Deployment => {
      const maxNumSeqs = Math.min(
        served.settings.maxNumSeqs,
        Number(row.text('max_concurrency')) || trace.arrivalMs.length,
      );
      const maxNumActiveSeqs = Math.min(served.settings.maxNumActiveSeqs, maxNumSeqs);
      return { ...served, settings: { ...served.settings, maxNumSeqs, maxNumActiveSeqs } };
    });
    const { bounds, untold } = compareDeployments(from, to, blocksOf(trace), slo, 0);
    const [{ ratio, verdict }] = bounds;
    const changes = repeats.map((each) => Number(each.pair.text('output_throughput_change_pct')));
    const measured = 1 / (1 + mean(changes) / 100);
    const [page, workload, ...setting] = settingOf(pair);
    const name = `${page}, ${workload}, ${before.row.text('engine')}, ${setting.join(' ')}`;
    return {
      ...{ figure: 'flags', name, measured, simulated: ratio, verdict, setting: setting[1] },
      untold: untold.length > 0,
    };
  });
}

// Operating points.

function operatingPoints(rows: readonly PointRow[]): Pair[] {
  const ERRORS = { vllm: PROFILE_ERRORS.tables, sglang: PROFILE_ERRORS.tablesOfSglang };
  /** Predictions of a fit that left the campaign of the point out. */
  const leftOut = ({ ours, refitted }: PointRow) => refitted?.campaign ?? ours;
  const conditions = ({ point }: PointRow) => [
    ...[point.model.replace(/^.*\//, '').replace(/-FP8$/, ''), point.campaign],
    ...[point.inputTokens, point.outputTokens, point.concurrency],
  ];
  const server = ({ engine, system, precision, tensor, data, expert }: OperatingPoint) => [
    ...[engine, system, precision, `${tensor} x ${data} x ${expert}`],
  ];
  // Some points were measured more than once.
  const measured = grouped(rows, (row) => [conditions(row), server(row.point), row.point.version]).map(
    (repeats): PointRow => ({
      ...repeats[0],
      point: {
        ...repeats[0].point,
        ttftMs: mean(repeats.map(({ point }) => point.ttftMs)),
        tpotMs: mean(repeats.map(({ point }) => point.tpotMs)),
      },
    }),
  );
  return grouped(measured, conditions).flatMap((same) =>
    pairsOf(same).flatMap(([a, b]) => {
      const [before, after] = [server(a.point), server(b.point)];
      const isOne = differences(before, after) === 1;
      const isSameVersion = a.point.engine !== b.point.engine || a.point.version === b.point.version;
      const [from, to] = [leftOut(a), leftOut(b)];
      if (!isOne || !isSameVersion || 'error' in from || 'error' in to) return [];
      const laws = [a, b].map(({ point }) => ERRORS[point.engine]);
      const name = `${conditions(a).join(' ')}: ${before.join(' ')} -> ${after.join(' ')}`;
      return (['ttftMs', 'tpotMs'] as const).map((latency) => {
        const simulated = to[latency] / from[latency];
        const metric = latency === 'ttftMs' ? 'ttft' : 'tpot';
        const share = errorOfRatio(laws, metric, a.point.engine === b.point.engine);
        const measured = b.point[latency] / a.point[latency];
        const interval = { low: simulated * (1 - share), high: simulated * (1 + share) };
        return {
          ...{ figure: `operating points, ${latency.slice(0, 4).toUpperCase()}`, name },
          ...{ measured, simulated, verdict: changeVerdict(simulated, interval) },
          isHeld: interval.low <= measured && measured <= interval.high,
        };
      });
    }),
  );
}
