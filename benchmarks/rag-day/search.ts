import { LocalJobs } from '@servegym/jobs';
import { randomUniform, streamKey } from '@servegym/simulator';
import { rankCorrelation } from '@servegym/simulator/statistics';
import { type Scored, Searcher, type SearchStage } from '../../packages/operators/src/search/searcher.ts';
import type { Row } from '../harness.ts';
import type { Deployment, Parallel, Pool } from './replay.ts';
import type { ReplayJob, ReplayResult } from './replay-job.ts';
import study from './study.json' with { type: 'json' };

const { space } = study;
/** Blocks are minutes of each hour. */
const STAGES: readonly SearchStage[] = [
  { name: 'a short part', blocks: 2 },
  { name: 'a longer part', blocks: 10, keep: 0, fewest: 48 },
  { name: 'the day', blocks: Number.POSITIVE_INFINITY, keep: 0, fewest: 8 },
];
/** Candidates drawn, rounds in which neighbours of the best so far are drawn too, those that are best, and the neighbours of a round. */
const DRAWN = 192;
const ROUNDS = 2;
const PARENTS = 12;
const NEIGHBOURS = 96;
/** Coverage of the second question, which the study does not ask. */
const FLOOR = 0.95;
const DIMENSIONS = 16;

interface SearchOptions {
  readonly threads: number;
  /** Score to be passed. */
  readonly toBeat: number;
  /** Points whose ranks on the two parts of the day are compared afterwards: the first that were drawn, good and bad. */
  readonly ranks: number;
}

interface Point {
  /** In the unit cube. */
  readonly at: readonly number[];
}
type Found = Point & ReplayResult & Scored;

/** The deployment at a point of the unit cube. The autoscaled one has one division for both roles. */
function deploymentAt(point: readonly number[], scenario: string): Deployment {
  let dimension = 0;
  const next = () => point[dimension++ % point.length];
  const pick = <T>(values: readonly T[]): T =>
    values[Math.min(values.length - 1, Math.floor(next() * values.length))];
  const engine = pick(space.engine);
  const isApart = pick([true, scenario === 'planner']);
  const [first, second]: Parallel[] = [pick(space.parallel), pick(space.parallel)];
  const replicas = () => Math.round((space.mostGpus / 16) ** next());
  const pool = (parallel: Parallel, limits: typeof space.mixed): Pool => {
    const maxNumBatchedTokens = pick(limits.maxNumBatchedTokens);
    return {
      ...{ replicas: replicas(), parallel, maxNumBatchedTokens },
      maxNumSeqs: Math.min(maxNumBatchedTokens, pick(limits.maxNumSeqs)),
    };
  };
  const isPlanner = scenario === 'planner';
  const pools = isApart
    ? { prefill: pool(first, space.prefill), decode: pool(isPlanner ? first : second, space.decode) }
    : { decode: pool(second, space.mixed) };
  const { overlapScoreCredit, prefillLoadScale } = space.router;
  const { throughputSeconds, loadSeconds, downPercent } = space.autoscaler;
  return {
    ...{ engine, ...pools },
    ...(scenario !== 'static' && {
      router: { overlapScoreCredit: pick(overlapScoreCredit), prefillLoadScale: pick(prefillLoadScale) },
    }),
    ...(isPlanner && {
      autoscaler: {
        ...{ throughputSeconds: pick(throughputSeconds), loadSeconds: pick(loadSeconds) },
        downPercent: pick(downPercent),
      },
    }),
  };
}

/** A neighbour of a point: some coordinates are drawn anew, some are moved a little. */
function neighbourOf({ at }: Point, draw: (dimension: number) => number): Point {
  return {
    at: at.map((value, d) => {
      const [how, drawn] = [draw(d), draw(DIMENSIONS + d)];
      if (how < 0.15) return drawn;
      return how < 0.4 ? Math.min(1, Math.max(0, value + 0.3 * (drawn - 0.5))) : value;
    }),
  };
}

/**
 * Searches a scenario: points drawn evenly on a few minutes of each hour, then neighbours of the best of them in rounds, then the
 * best on more minutes and on the day, as many of those with the coverage as of the others.
 */
export async function* search(
  scenario: string,
  of: Omit<ReplayJob, 'minutes' | 'deployment'>,
  { threads, toBeat, ranks }: SearchOptions,
): AsyncGenerator<Row | string> {
  const jobs = new LocalJobs({
    ...{ kinds: { replay: new URL('replay-job.ts', import.meta.url).href }, threads },
  });
  const key = streamKey(of.seed, `rag-day-search ${scenario}`);
  const started = performance.now();
  const elapsedS = () => (performance.now() - started) / 1000;
  let beatenS: number | null = null;
  let cpuS = 0;
  const isCovered = (point: Point | Found) => 'coverage' in point && point.coverage >= FLOOR;
  const searcher = new Searcher<Point, Found, SearchStage>({
    keyOf: ({ at }) => at.join(),
    kindOf: (point) => String(isCovered(point)),
    async evaluate(points, { blocks }) {
      const inputs = points.map(({ at }) => ({
        ...{ ...of, minutes: Math.min(60, blocks), deployment: deploymentAt(at, scenario) },
      }));
      const results = await jobs.run(
        inputs.map((input) => ({ kind: 'replay', input: JSON.parse(JSON.stringify(input)) })),
        {
          onResult(result) {
            const { goodputPerGpu, cpuS: own } = result as unknown as ReplayResult;
            cpuS += own;
            if (blocks > 60 && goodputPerGpu >= toBeat) beatenS ??= elapsedS();
          },
        },
      );
      return (results as unknown as ReplayResult[]).map((result, i) => ({
        ...{ ...points[i], ...result, score: result.goodputPerGpu },
      }));
    },
  });
  try {
    const draw = (i: number) => (dimension: number) => randomUniform(key, i, dimension);
    const drawn = Array.from({ length: DRAWN }, (_, i) => ({
      at: Array.from({ length: DIMENSIONS }, (_, d) => draw(i)(d)),
    }));
    const [short] = STAGES;
    const known = await searcher.evaluate(drawn, short);
    for (let round = 0; round < ROUNDS; round++) {
      const parents = searcher.order(known).slice(0, PARENTS);
      const around = Array.from({ length: NEIGHBOURS }, (_, i) =>
        neighbourOf(parents[i % PARENTS], draw(-1 - round * NEIGHBOURS - i)),
      );
      known.push(...(await searcher.evaluate(around, short)));
    }
    const shortS = elapsedS();
    const shortCpuS = known.reduce((sum, { cpuS }) => sum + cpuS, 0);
    await searcher.halve([], STAGES, known);
    const [winner] = searcher.ranked;
    const kept = searcher.agreements[0].correlation;
    const [searchS, searchCpuS] = [elapsedS(), cpuS];
    const again = await searcher.evaluate(drawn.slice(0, ranks), STAGES[1]);
    const covered = searcher.ranked.find(isCovered);
    yield {
      scenario,
      'short replays': known.length,
      'a second, wall': known.length / shortS,
      'a second of CPU and core': known.length / shortCpuS,
      'rank correlation of short and longer, kept': kept,
      ...(ranks > 0 && {
        'of those drawn first': rankCorrelation(
          known.slice(0, ranks).map(({ score }) => score),
          again.map(({ score }) => score),
        ),
      }),
      'to beat': toBeat,
      'beaten after, s': beatenS,
      'search, s': searchS,
      'CPU s': searchCpuS,
      best: winner.score,
      coverage: winner.coverage,
      [`best at ${100 * FLOOR} %`]: covered?.score,
      'its GPUs': covered?.averageGpus,
    };
    yield `${scenario}, best: ${JSON.stringify(deploymentAt(winner.at, scenario))}`;
    if (covered)
      yield `${scenario}, best with coverage: ${JSON.stringify(deploymentAt(covered.at, scenario))}`;
  } finally {
    await jobs.close();
  }
}
