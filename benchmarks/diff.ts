// npx node benchmarks/diff.ts --data <folder of the public measurements> [--league league.json] [--misses]
//
// Whether `servegym diff` is right about measured pairs that differ in one thing, and how long it takes for 20,000 requests.
//
// - Token budgets: mean TTFT and TPOT of vLLM 0.22 on an RTX 5090 (TimoSaemann/ppas-vllm, Apache-2.0) with two static
//   budgets and the same arrivals. The profile is estimated from data sheets.
// - Static batches: latency of whole batches on vLLM (LLM-Inference-Bench, BSD-3-Clause) that differ in the GPU, their
//   number, or the precision of weights or KV cache. Once with the shipped profiles, which were fitted to these rows, and
//   once with profiles estimated from data sheets.
// - Operating points: open rows of NVIDIA's aiconfigurator-core with equal model, lengths and concurrency that differ in the
//   engine, the GPU, the precision or the division over GPUs. `--league` is made by `npx servegym fidelity --tables FOLDER
//   --json`, whose answers come from kernel tables; the intervals are those of the profiles' errors alone.
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { closedBatch, type EngineProfile, listProfiles, repeatTrace, type Trace } from '@servegym/simulator';
import {
  estimatedProfile,
  findGpu,
  findModel,
  modelFromConfig,
  type OperatingPoint,
  parseStaticBatches,
  type StaticBatchRow,
  VLLM_V0,
} from '@servegym/simulator/calibration';
import { mean } from '@servegym/simulator/statistics';
import {
  blocksOf,
  type Candidate,
  type ChangeVerdict,
  changeVerdict,
  compareDeployments,
  type Deployed,
  PROFILE_ERRORS,
  parseSlo,
  vllmDefaults,
} from '@servegym/tuning';
import {
  findReferenceFiles,
  type LeagueRow,
  REFERENCE_DATA,
  type ReferenceFile,
} from '@servegym/tuning/fidelity';
import { readTrace } from '@servegym/tuning/traces';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    league: { type: 'string' },
    misses: { type: 'boolean', default: false },
  },
});
if (values.data === undefined) throw new Error('expected --data <folder>, see docs/reference-data.md');
const data = resolve(values.data);
const read = (file: ReferenceFile) => readFile(findReferenceFiles(data, [file])[0], 'utf8');

/** A figure measured on two sides, and what diff says of it. Ratios are of the second side over the first. */
interface Pair {
  readonly figure: string;
  readonly name: string;
  readonly measured: number;
  readonly simulated: number;
  readonly verdict: ChangeVerdict;
}

/** Pairs that differ by more, and by less, than which the bars are. */
const APART = 0.05;
const CLOSE = 0.02;

function pairsOf<Item>(items: readonly Item[]): (readonly [Item, Item])[] {
  return items.flatMap((a, i) => items.slice(i + 1).map((b) => [a, b] as const));
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => unknown): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = JSON.stringify(keyOf(item));
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return [...groups.values()];
}

function deployed(profile: EngineProfile, settings: Partial<Candidate> = {}): Deployed {
  return {
    ...{ name: profile.name, profile, engines: 1, notSimulated: [] },
    settings: { ...vllmDefaults(profile), ...settings },
  };
}

// Token budgets.

interface BudgetRow {
  readonly command: string;
  readonly file: string;
  readonly seed: number;
  readonly phase_schedule: string;
  readonly configured_prompt_tokens: number;
  readonly configured_output_tokens: number;
  readonly config_name: string;
  readonly num_requests: number;
  readonly max_num_batched_tokens: number;
  readonly max_num_seqs: number;
  readonly avg_ttft: number;
  readonly avg_tpot: number;
}

const TOKEN_BUDGETS: ReferenceFile = {
  path: 'measured/vllm-0.22-rtx5090-token-budget.jsonl',
  source: 'ppas-vllm (github.com/TimoSaemann/ppas-vllm, Apache-2.0)',
};

/** Shapes of the models, from the `config.json` of their checkpoints. */
const SHAPES: Readonly<Record<string, Readonly<Record<string, string | number | boolean>>>> = {
  'Qwen/Qwen2.5-0.5B-Instruct': {
    ...{ model_type: 'qwen2', hidden_size: 896, num_hidden_layers: 24, num_attention_heads: 14 },
    ...{ num_key_value_heads: 2, intermediate_size: 4864, vocab_size: 151_936 },
  },
  'Qwen/Qwen2.5-3B-Instruct': {
    ...{ model_type: 'qwen2', hidden_size: 2048, num_hidden_layers: 36, num_attention_heads: 16 },
    ...{ num_key_value_heads: 2, intermediate_size: 11_008, vocab_size: 151_936 },
  },
  // A Llama without rotary embeddings in every fourth layer.
  'HuggingFaceTB/SmolLM3-3B': {
    ...{ model_type: 'llama', hidden_size: 2048, num_hidden_layers: 36, num_attention_heads: 16 },
    ...{ num_key_value_heads: 4, intermediate_size: 11_008, vocab_size: 128_256 },
  },
};

function budgetProfile(checkpoint: string): EngineProfile {
  const config = { ...SHAPES[checkpoint], tie_word_embeddings: true, max_position_embeddings: 32_768 };
  const model = modelFromConfig(JSON.stringify(config), checkpoint, checkpoint);
  return estimatedProfile(findGpu('RTX 5090'), model, 1);
}

/**
 * Arrivals as the publishers drew them, s: `random.Random(seed).expovariate(rate)` of Python in each phase. With it the
 * number of requests and the most in a second are those of all 50 published schedules.
 */
const ARRIVALS = `
import json, random, sys
def arrivals(seed, phases):
    draw, out, start = random.Random(seed), [], 0.0
    for phase in phases.split(","):
        seconds, rate = map(float, phase.split(":"))
        at = start + draw.expovariate(rate)
        while at < start + seconds:
            out.append(at)
            at += draw.expovariate(rate)
        start += seconds
    return out
print(json.dumps([arrivals(*each) for each in json.load(sys.stdin)]))
`;

function drawArrivals(schedules: readonly (readonly [seed: number, phases: string])[]): number[][] {
  const { stdout, stderr, status } = spawnSync(process.env.SERVEGYM_PYTHON ?? 'python3', ['-c', ARRIVALS], {
    input: JSON.stringify(schedules),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`expected a Python 3 (SERVEGYM_PYTHON) that draws arrivals: ${stderr}`);
  return JSON.parse(stdout);
}

async function tokenBudgets(): Promise<Pair[]> {
  const rows = (await read(TOKEN_BUDGETS))
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text) as BudgetRow)
    // The publishers' own scheduler changes the budget while it serves.
    .filter(({ config_name }) => !config_name.startsWith('ppas'));
  const loads = grouped(rows, (row) => [
    ...[row.file, row.command.split(' ')[2], row.seed, row.phase_schedule],
    ...[row.configured_prompt_tokens, row.configured_output_tokens],
  ]);
  const arrivals = drawArrivals(loads.map(([row]) => [row.seed, row.phase_schedule]));
  const slo = parseSlo('ttft_mean=1s,tpot_mean=50ms');
  return loads.flatMap((same, i) => {
    const [{ command, num_requests, configured_prompt_tokens, configured_output_tokens }] = same;
    if (arrivals[i].length !== num_requests)
      throw new Error(`expected ${num_requests} arrivals, got ${arrivals[i].length}`);
    const trace: Trace = {
      ...closedBatch(num_requests, configured_prompt_tokens, configured_output_tokens),
      arrivalMs: Float64Array.from(arrivals[i], (s) => 1000 * s),
    };
    const checkpoint = command.split(' ')[2];
    const profile = budgetProfile(checkpoint);
    const served = (row: BudgetRow) =>
      deployed(profile, {
        ...{ maxNumBatchedTokens: row.max_num_batched_tokens, maxNumSeqs: row.max_num_seqs },
      });
    return pairsOf(same).flatMap(([a, b]) => {
      const { bounds } = compareDeployments(served(a), served(b), blocksOf(trace), slo, 0);
      const name = `${checkpoint.replace(/^.*\//, '')}, ${configured_prompt_tokens} in, ${configured_output_tokens} out, ${a.phase_schedule}, seed ${a.seed}: ${a.max_num_batched_tokens} -> ${b.max_num_batched_tokens}`;
      const measured = [b.avg_ttft / a.avg_ttft, b.avg_tpot / a.avg_tpot];
      return bounds.map(({ ratio, verdict }, t) => ({
        ...{ figure: `token budgets, ${t === 0 ? 'TTFT' : 'TPOT'}`, name, measured: measured[t] },
        ...{ simulated: ratio, verdict },
      }));
    });
  });
}

// Static batches.

const GPUS: Readonly<Record<string, string>> = { A100: 'A100-40GB', H100: 'H100-80GB', GH200: 'GH200-96GB' };

function batchPairs(
  figure: string,
  rows: readonly StaticBatchRow[],
  profileOf: (row: StaticBatchRow) => EngineProfile | undefined,
): Pair[] {
  const slo = parseSlo('e2e_mean=1s');
  const known = rows.flatMap((row) => {
    const profile = profileOf(row);
    return profile === undefined
      ? []
      : [{ row, served: deployed(profile, { weights: row.weights === 'fp8' ? 'FP8' : 'FP16' }) }];
  });
  const conditions = ({ row }: (typeof known)[number]) => [
    ...[row.model, row.inputTokens, row.outputTokens, row.batch],
  ];
  const server = ({ gpu, gpus, weights, kvCache }: StaticBatchRow) => [gpu, gpus, weights, kvCache];
  return grouped(known, conditions).flatMap((same) =>
    pairsOf(same)
      .filter(([a, b]) => differences(server(a.row), server(b.row)) === 1)
      .map(([a, b]) => {
        const { batch, inputTokens, outputTokens } = a.row;
        const traffic = blocksOf(closedBatch(batch, inputTokens, outputTokens));
        const [{ ratio, verdict }] = compareDeployments(a.served, b.served, traffic, slo, 0).bounds;
        const name = `${a.row.model}, ${batch} x ${inputTokens}: ${server(a.row).join(' ')} -> ${server(b.row).join(' ')}`;
        return { figure, name, measured: b.row.latencyS / a.row.latencyS, simulated: ratio, verdict };
      }),
  );
}

const differences = (a: readonly unknown[], b: readonly unknown[]) =>
  a.filter((value, i) => value !== b[i]).length;

async function staticBatches(): Promise<Pair[]> {
  const { staticBatches: file } = REFERENCE_DATA;
  const rows = parseStaticBatches(await read(file), file.path).filter(({ engine }) => engine === 'vLLM');
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
    ...batchPairs('static batches, estimated profiles', rows, ({ gpu, gpus, model, kvCache }) => {
      const cache = kvCache === 'fp8' ? 'FP8' : 'FP16';
      return estimatedProfile(findGpu(GPUS[gpu]), findModel(model), gpus, VLLM_V0, cache);
    }),
  ];
}

// Operating points.

function operatingPoints(league: readonly LeagueRow[]): Pair[] {
  const share = Math.hypot(PROFILE_ERRORS.tables.share, PROFILE_ERRORS.tables.share);
  const conditions = ({ point }: LeagueRow) => [
    ...[point.model.replace(/^.*\//, '').replace(/-FP8$/, ''), point.source, point.repeatsPrompts],
    ...[point.inputTokens, point.outputTokens, point.concurrency],
  ];
  const server = ({ engine, system, precision, tensor, data, expert }: OperatingPoint) => [
    ...[engine, system, precision, `${tensor} x ${data} x ${expert}`],
  ];
  // Some points were measured more than once.
  const measured = grouped(league, (row) => [conditions(row), server(row.point), row.point.version]).map(
    (repeats): LeagueRow => ({
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
      if (!isOne || !isSameVersion || 'error' in a.ours || 'error' in b.ours) return [];
      const { ours: from } = a;
      const { ours: to } = b;
      const name = `${conditions(a).join(' ')}: ${before.join(' ')} -> ${after.join(' ')}`;
      return (['ttftMs', 'tpotMs'] as const).map((latency) => {
        const simulated = to[latency] / from[latency];
        const interval = { low: simulated * (1 - share), high: simulated * (1 + share) };
        return {
          ...{ figure: `operating points, ${latency.slice(0, 4).toUpperCase()}`, name },
          ...{ measured: b.point[latency] / a.point[latency], simulated },
          verdict: changeVerdict(simulated, interval),
        };
      });
    }),
  );
}

const pairs = [
  ...(await tokenBudgets()),
  ...(await staticBatches()),
  ...(values.league === undefined
    ? []
    : operatingPoints(JSON.parse(await readFile(values.league, 'utf8')).league)),
];

const share = (part: readonly Pair[], of: readonly Pair[]) =>
  of.length === 0 ? '-' : `${((100 * part.length) / of.length).toFixed(0)} %`;
const isRight = ({ measured, simulated }: Pair) => measured > 1 === simulated > 1;

console.log(
  '| pairs | differ by > 5 % | sign is right | a verdict is given | right of these | differ by < 2 % | too close to tell |',
);
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const all of grouped(pairs, ({ figure }) => figure)) {
  const [{ figure }] = all;
  const apart = all.filter(({ measured }) => Math.abs(measured - 1) > APART);
  const told = apart.filter(({ verdict }) => verdict !== 'too close to tell');
  const close = all.filter(({ measured }) => Math.abs(measured - 1) < CLOSE);
  const cells = [
    ...[figure, apart.length, share(apart.filter(isRight), apart), share(told, apart)],
    ...[share(told.filter(isRight), told), close.length],
    share(
      close.filter(({ verdict }) => verdict === 'too close to tell'),
      close,
    ),
  ];
  console.log(`| ${cells.join(' | ')} |`);
  if (!values.misses) continue;
  for (const { name, measured, simulated, verdict } of apart.filter((pair) => !isRight(pair)))
    console.error(
      `${figure}: ${name}: ${measured.toFixed(3)}, simulated ${simulated.toFixed(3)}, ${verdict}`,
    );
}

const { trace } = await readTrace(findReferenceFiles(data, [REFERENCE_DATA.azureConversation])[0], {});
const profile = listProfiles().find(({ name }) => name === 'h100-80gb-llama-3-8b')!;
const started = performance.now();
const { requests } = compareDeployments(
  deployed(profile),
  deployed(profile, { maxNumSeqs: 64 }),
  blocksOf(repeatTrace(trace, 20_000)),
  parseSlo('ttft_p99=1s,tpot_p99=50ms'),
  0,
);
console.log(
  `\n${requests.toLocaleString('en-US')} requests compared in ${((performance.now() - started) / 1000).toFixed(1)} s`,
);
