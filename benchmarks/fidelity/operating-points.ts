import { findModel, type ServedModel } from '@servegym/profiles';
import {
  drawLengths,
  type EngineProfile,
  type KvPrecision,
  repeatTrace,
  simulateTrace,
  type Trace,
  type WeightPrecision,
} from '@servegym/simulator';
import { mean, summarize } from '@servegym/simulator/statistics';
import type { OperatingPoint } from '../../packages/profiles/src/tables/operating-points.ts';
import {
  errorPercent,
  type PointAnswer,
  type PointErrors,
  type PointGroup,
  type PointRow,
} from './fidelity.ts';

/** Settings that a public operating point was measured with. */
interface PointRecipe {
  /** Token budget of an iteration (SGLang chunked_prefill_size). */
  readonly budget: number;
  /** Share of the memory for weights and KV (SGLang mem_fraction_static); `null`: the engine's default. */
  readonly memoryShare: number | null;
  /** Iterations between two looks for new requests (SGLang scheduler_recv_interval). */
  readonly receiveEvery: number;
}

/** Default token budget on GPUs of 70 GiB and more. */
const DEFAULTS: PointRecipe = { budget: 8192, memoryShare: null, receiveEvery: 1 };

/**
 * Settings of a point: of rows of InferenceX on SGLang those of its public recipes (SemiAnalysisAI/InferenceX,
 * benchmarks/single_node: dsr1_fp8_b200.sh, dsr1_fp4_b200.sh, dsr1_fp8_h200.sh, qwen3.5_fp8_b200.sh,
 * qwen3.5_bf16_b200.sh, glm5_fp8_b200.sh), else the engine's defaults.
 */
export function pointRecipe(point: OperatingPoint): PointRecipe {
  const { engine, source, system, model, precision, tensor, concurrency } = point;
  if (engine !== 'sglang' || source !== 'InferenceX') return DEFAULTS;
  const isB200 = system === 'b200_sxm';
  const large = { ...DEFAULTS, budget: 32_768, memoryShare: 0.82 };
  if (/GLM/.test(model)) return { ...large, memoryShare: 0.85 };
  if (!isB200) return large;
  const receiveEvery = concurrency < 16 ? 10 : 30;
  if (!/DeepSeek/.test(model)) return { ...large, receiveEvery };
  if (precision === 'fp4') return { ...large, budget: 16_384, memoryShare: 0.85, receiveEvery };
  if (tensor === 4) return { budget: 8192, memoryShare: 0.95, receiveEvery: 10 };
  return { ...large, receiveEvery };
}

/** A profile for a point, with the precision of the weights that the point was measured with. */
export interface PointProfile {
  readonly profile: EngineProfile;
  readonly weights: WeightPrecision;
}

/** Shortest lengths that are drawn, over the nominal ones. */
const LEAST_LENGTH = 0.8;
/** More than any point has in flight. */
const MOST_SEQUENCES = 8192;

/**
 * Time by which a request that is sent with others delays the first iteration of them all, ms: a front end reads,
 * parses and tokenizes the requests of a burst in turns, so that none is scheduled before nearly all are. Chosen on the
 * open rows, of which the TTFT grows by half a millisecond for each request in flight more than with a front end that
 * has no limit, whatever model, GPU and parallelism.
 */
const BURST_MS = 5;
/** Prompts that a load generator draws unless it is told how many: AIPerf's default. */
const PROMPTS = 100;
const BLOCK_TOKENS = 16;
/** More than any prompt has. */
const MOST_BLOCKS = 1e6;
/** Longer than any warm-up takes. */
const WARM_UP_MS = 1e8;

/** The model that a Hugging Face id names, whatever the precision of its weights. @throws {ProfileError} */
export function pointModel({ model }: OperatingPoint): ServedModel {
  const name = model.replace(/^nvidia\/Llama/, 'meta-llama/Llama').replace(/-(FP8|NVFP4)$/, '');
  return findModel(name);
}

/** Precision of the weights of a point. */
export function pointWeights({ precision }: OperatingPoint, { checkpoint }: ServedModel): WeightPrecision {
  if (precision === 'fp8') return 'FP8';
  if (precision === 'fp4') return checkpoint === 'MXFP4' ? 'MXFP4' : 'NVFP4';
  return 'FP16';
}

/** Precision of the KV cache of a point: recipes for B200 set 8 bits, as the queues of points that overflow it tell. */
export function pointKvCache({ system }: OperatingPoint): KvPrecision {
  return system === 'b200_sxm' ? 'FP8' : 'FP16';
}

/** Mean latencies of a closed loop with the engine's default settings. */
export function simulatePoint(point: OperatingPoint, { profile, weights }: PointProfile): PointAnswer {
  const { concurrency, inputTokens, outputTokens, repeatsPrompts } = point;
  const requests = point.requestsEach * concurrency;
  const { budget: maxNumBatchedTokens, receiveEvery } = pointRecipe(point);
  const common = {
    ...{ profile, weights, prefixCaching: repeatsPrompts },
    ...{ maxNumSeqs: MOST_SEQUENCES, maxNumBatchedTokens },
  };
  const range = { inputTokens, outputTokens, range: LEAST_LENGTH };
  const run = repeatsPrompts
    ? simulateTrace(repeatedPrompts(drawLengths({ requests: PROMPTS, ...range }), point), common)
    : simulateTrace(drawLengths({ requests, ...range }), { ...common, concurrency });
  const warmUp = run.ttftMs.length - requests;
  if (run.completed < run.ttftMs.length) return { error: `${run.rejected} requests do not fit the KV pool` };
  // The requests that start the loop are the only burst.
  const burstMs = (BURST_MS * concurrency * concurrency) / requests;
  const tpotMs = summarize(run.tpotMs.slice(warmUp).filter(Number.isFinite)).mean;
  // A request waits for half the interval at which SGLang looks for new ones; each look takes no time.
  const receiveMs = receiveEvery === 1 ? 0 : (receiveEvery / 2) * tpotMs;
  const ttftMs = summarize(run.ttftMs.slice(warmUp)).mean + burstMs + receiveMs;
  return { ttftMs, tpotMs };
}

/**
 * The load of a generator that goes through a list of prompts over and over: each client sends one request to warm up
 * and, when all are answered, one after the other.
 */
function repeatedPrompts(prompts: Trace, { concurrency, requestsEach }: OperatingPoint): Trace {
  const count = concurrency * (1 + requestsEach);
  const { source, inputTokens, outputTokens } = repeatTrace(prompts, count);
  const offsets = new Int32Array(count + 1);
  for (let i = 0; i < count; i += 1) offsets[i + 1] = offsets[i] + Math.floor(inputTokens[i] / BLOCK_TOKENS);
  const ids = new Float64Array(offsets[count]);
  for (let i = 0; i < count; i += 1) {
    const first = (i % PROMPTS) * MOST_BLOCKS;
    for (let at = offsets[i]; at < offsets[i + 1]; at += 1) ids[at] = first + at - offsets[i];
  }
  return {
    ...{ source, inputTokens, outputTokens, prefixBlocks: { blockTokens: BLOCK_TOKENS, ids, offsets } },
    arrivalMs: Float64Array.from({ length: count }, (_, i) => (i < concurrency ? 0 : WARM_UP_MS)),
    followUps: {
      previous: Int32Array.from({ length: count }, (_, i) => (i < 2 * concurrency ? -1 : i - concurrency)),
      thinkMs: new Float64Array(count),
    },
  };
}

/** Answers for points of one server; equal ones are simulated once. */
export function pointAnswers(points: readonly OperatingPoint[], served: PointProfile): PointAnswer[] {
  const known = new Map<string, PointAnswer>();
  return points.map((point) => {
    const { concurrency, inputTokens, outputTokens } = point;
    const { requestsEach, repeatsPrompts } = point;
    const key = JSON.stringify([concurrency, inputTokens, outputTokens, requestsEach, repeatsPrompts]);
    const answer = known.get(key) ?? simulatePoint(point, served);
    known.set(key, answer);
    return answer;
  });
}

/**
 * Points of a server that was disturbed. gpt-oss-120b at 512 in flight on H100 has a third of the TPOT that vLLM 0.18 has at
 * 64, and of two GPUs less than the weights take to be read. DeepSeek in FP4 on SGLang of November 2025 has a first burst
 * that waits for 15 to 80 s, as long as kernels take to compile, whatever its size.
 */
export function isDisturbed({
  engine,
  version,
  model,
  system,
  precision,
  concurrency,
}: OperatingPoint): boolean {
  if (engine === 'sglang') return version === '' && precision === 'fp4' && /DeepSeek/.test(model);
  const isOld = version === '' || version === '0.11.2';
  return isOld && /gpt-oss-120b/.test(model) && system === 'h100_sxm' && concurrency === 512;
}

/** TPOTs of one server agree this well, of the smaller. */
const SAME_SERVER = 1.05;

/**
 * Of points that agree in all labels but not in their TPOT, those with the smallest and the largest: the table does not
 * name what their servers differ in. Models of one shape count as one.
 */
function contradictions(rows: readonly PointRow[]): ReadonlyMap<PointRow, 'faster' | 'slower'> {
  const labels = ({ point }: PointRow) => {
    const { id: _, model, ttftMs: __, tpotMs: ___, ...others } = point;
    return JSON.stringify([knownModel(point)?.shape ?? model, others]);
  };
  const found = new Map<PointRow, 'faster' | 'slower'>();
  for (const twins of Map.groupBy(rows, labels).values()) {
    const times = twins.map(({ point }) => point.tpotMs);
    const least = Math.min(...times);
    if (Math.max(...times) <= least * SAME_SERVER) continue;
    for (const row of twins) found.set(row, row.point.tpotMs <= least * SAME_SERVER ? 'faster' : 'slower');
  }
  return found;
}

/** Name of the group that a row belongs to; `null`: none. */
const GROUPS: readonly ((row: PointRow, twin: 'faster' | 'slower' | undefined) => string | null)[] = [
  () => 'all',
  ({ point }) => (isDisturbed(point) ? null : 'all but disturbed points'),
  (_, twin) => (twin === undefined ? null : `equal labels, the ${twin} server`),
  ({ point }) => `source: ${point.source}`,
  ({ point }) => point.model.replace(/^.*\//, ''),
  ({ point }) => point.system,
  ({ point }) => point.precision || 'bf16',
  ({ point }) => `version ${point.version || 'unknown'}`,
  ({ point }) => (isMixture(point) ? 'mixture' : 'dense'),
  ({ point }) => (isMixture(point) ? `${point.expert > 1 ? '' : 'no '}expert parallelism` : null),
  ({ point: { concurrency } }) =>
    concurrency <= 8
      ? 'concurrency up to 8'
      : concurrency <= 64
        ? 'concurrency 9 to 64'
        : 'concurrency above 64',
];

/** Errors of all rows of an engine, and by model, GPU, precision, kind of model and concurrency. */
export function pointGroups(rows: readonly PointRow[]): PointGroup[] {
  const twins = contradictions(rows);
  return GROUPS.flatMap((nameOf) => {
    const groups = Map.groupBy(rows, (row) => nameOf(row, twins.get(row)));
    const names = [...groups.keys()].filter((name) => name !== null).sort();
    return names.map((group) => {
      const of = groups.get(group)!;
      const both = of.filter(
        ({ ours, theirs }) => theirs !== null && !('error' in theirs) && !('error' in ours),
      );
      const asked = of.some(({ theirs }) => theirs !== null);
      return {
        group,
        rows: of.length,
        ours: errorsOf(of, ({ ours }) => ours),
        theirs: asked ? errorsOf(of, ({ theirs }) => theirs ?? { error: 'no answer' }) : null,
        oursBeside: asked ? errorsOf(both, ({ ours }) => ours) : null,
      };
    });
  });
}

function errorsOf(rows: readonly PointRow[], answerOf: (row: PointRow) => PointAnswer): PointErrors {
  const ttft: number[] = [];
  const tpot: number[] = [];
  for (const row of rows) {
    const answer = answerOf(row);
    if ('error' in answer) continue;
    ttft.push(errorPercent(answer.ttftMs, row.point.ttftMs));
    tpot.push(errorPercent(answer.tpotMs, row.point.tpotMs));
  }
  const of = (values: readonly number[], statistic: (values: readonly number[]) => number) =>
    values.length === 0 ? null : statistic(values);
  const meanSize = (errors: readonly number[]) => mean(errors.map(Math.abs));
  const median = (errors: readonly number[]) => summarize(Float64Array.from(errors)).p50;
  return {
    failed: rows.length - ttft.length,
    ttft: of(ttft, meanSize),
    tpot: of(tpot, meanSize),
    ttftMedian: of(ttft, median),
    tpotMedian: of(tpot, median),
  };
}

/** Models that are not known count as mixtures. */
function isMixture(point: OperatingPoint): boolean {
  return knownModel(point)?.experts !== null;
}

function knownModel(point: OperatingPoint): ServedModel | undefined {
  try {
    return pointModel(point);
  } catch {
    return undefined;
  }
}
