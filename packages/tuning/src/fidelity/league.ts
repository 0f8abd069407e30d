import {
  drawLengths,
  type EngineProfile,
  type KvPrecision,
  simulateTrace,
  type WeightPrecision,
} from '@servegym/simulator';
import { findModel, type OperatingPoint, type ServedModel } from '@servegym/simulator/calibration';
import { mean, summarize } from '@servegym/simulator/statistics';
import {
  errorPercent,
  type LeagueAnswer,
  type LeagueErrors,
  type LeagueGroup,
  type LeagueRow,
} from './fidelity.ts';

/** A profile for a point, with the precision of the weights that the point was measured with. */
export interface PointProfile {
  readonly profile: EngineProfile;
  readonly weights: WeightPrecision;
}

/** Shortest lengths that are drawn, over the nominal ones. */
const LEAST_LENGTH = 0.8;
/** Default token budget of an iteration, on GPUs of 70 GiB and more. */
const BUDGET = 8192;
/** More than any point has in flight. */
const MOST_SEQUENCES = 8192;

/**
 * Time by which a request that is sent with others delays the first iteration of them all, ms: a front end reads,
 * parses and tokenizes the requests of a burst in turns, so that none is scheduled before nearly all are. Chosen on the
 * open rows, of which the TTFT grows by half a millisecond for each request in flight more than with a front end that
 * has no limit, whatever model, GPU and parallelism.
 */
const BURST_MS = 5;

/** The model that a Hugging Face id names, whatever the precision of its weights. @throws {CalibrationError} */
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
export function simulatePoint(point: OperatingPoint, { profile, weights }: PointProfile): LeagueAnswer {
  const { concurrency, inputTokens, outputTokens } = point;
  const requests = point.requestsEach * concurrency;
  const run = simulateTrace(drawLengths({ requests, inputTokens, outputTokens, range: LEAST_LENGTH }), {
    profile,
    weights,
    concurrency,
    maxNumSeqs: Math.min(MOST_SEQUENCES, BUDGET),
    maxNumBatchedTokens: BUDGET,
    prefixCaching: false,
  });
  if (run.completed < requests) return { error: `${run.rejected} requests do not fit the KV pool` };
  // The requests that start the loop are the only burst.
  const burstMs = (BURST_MS * concurrency * concurrency) / requests;
  return {
    ttftMs: summarize(run.ttftMs).mean + burstMs,
    tpotMs: summarize(run.tpotMs.filter(Number.isFinite)).mean,
  };
}

/** Answers for points of one server; equal ones are simulated once. */
export function leagueAnswers(points: readonly OperatingPoint[], served: PointProfile): LeagueAnswer[] {
  const known = new Map<string, LeagueAnswer>();
  return points.map((point) => {
    const { concurrency, inputTokens, outputTokens } = point;
    const key = JSON.stringify([concurrency, inputTokens, outputTokens]);
    const answer = known.get(key) ?? simulatePoint(point, served);
    known.set(key, answer);
    return answer;
  });
}

const GROUPS: readonly ((row: LeagueRow) => string)[] = [
  () => 'all',
  ({ point }) => `source: ${point.source}`,
  ({ point }) => point.model.replace(/^.*\//, ''),
  ({ point }) => point.system,
  ({ point }) => point.precision || 'bf16',
  ({ point }) => `version ${point.version || 'unknown'}`,
  ({ point }) => (isMixture(point) ? 'mixture' : 'dense'),
  ({ point: { concurrency } }) =>
    concurrency <= 8
      ? 'concurrency up to 8'
      : concurrency <= 64
        ? 'concurrency 9 to 64'
        : 'concurrency above 64',
];

/** Errors of all rows of an engine, and by model, GPU, precision, kind of model and concurrency. */
export function leagueGroups(rows: readonly LeagueRow[]): LeagueGroup[] {
  return GROUPS.flatMap((nameOf) => {
    const names = [...new Set(rows.map(nameOf))].sort();
    return names.map((group) => {
      const of = rows.filter((row) => nameOf(row) === group);
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

function errorsOf(rows: readonly LeagueRow[], answerOf: (row: LeagueRow) => LeagueAnswer): LeagueErrors {
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

function isMixture(point: OperatingPoint): boolean {
  try {
    return pointModel(point).experts !== null;
  } catch {
    // Models that are not supported are mixtures: Qwen3.5-397B-A17B, GLM-5.
    return true;
  }
}
