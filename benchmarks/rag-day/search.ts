import { type Job, LocalJobs } from '@servegym/jobs';
import { randomUniform, streamKey } from '@servegym/simulator';
import { rankCorrelation } from '@servegym/simulator/statistics';
import type { Row } from '../harness.ts';
import type { Deployment, Parallel, Pool } from './replay.ts';
import type { ReplayJob, ReplayResult } from './replay-job.ts';
import study from './study.json' with { type: 'json' };

const { space } = study;
/** Minutes of each hour at the short stage and behind it; 60 is the whole day. */
const MINUTES = [2, 10, 60];
/** Candidates drawn, those whose neighbours are drawn too, and those that each later stage takes. */
const DRAWN = 192;
const PARENTS = 12;
const NEIGHBOURS = 96;
const KEPT = [20, 6];
/** Coverage of the second question, which the study does not ask. */
const FLOOR = 0.95;
const DIMENSIONS = 16;

interface Candidate {
  readonly at: readonly number[];
  readonly deployment: Deployment;
  /** By stage. */
  readonly results: ReplayResult[];
}

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
  const { router, autoscaler } = space;
  return {
    engine,
    ...(isApart
      ? {
          prefill: pool(first, space.prefill),
          decode: pool(scenario === 'planner' ? first : second, space.decode),
        }
      : { decode: pool(second, space.mixed) }),
    ...(scenario !== 'static' && {
      router: {
        overlapScoreCredit: pick(router.overlapScoreCredit),
        prefillLoadScale: pick(router.prefillLoadScale),
      },
    }),
    ...(scenario === 'planner' && {
      autoscaler: {
        throughputSeconds: pick(autoscaler.throughputSeconds),
        loadSeconds: pick(autoscaler.loadSeconds),
        downPercent: pick(autoscaler.downPercent),
      },
    }),
  };
}

/**
 * Searches a scenario: points drawn evenly on a few minutes of each hour, then neighbours of the best of them, then the best
 * on more minutes and on the day. Half of those that a stage keeps are the best with the coverage.
 */
export async function* search(
  scenario: string,
  of: Omit<ReplayJob, 'minutes' | 'deployment'>,
  threads: number,
  toBeat: number,
): AsyncGenerator<Row | string> {
  const kinds = { replay: new URL('replay-job.ts', import.meta.url).href };
  const jobs = new LocalJobs({ kinds, threads });
  const key = streamKey(of.seed, `rag-day-search ${scenario}`);
  const candidate = (at: readonly number[]): Candidate => ({
    at,
    deployment: deploymentAt(at, scenario),
    results: [],
  });
  const started = performance.now();
  const elapsedS = () => (performance.now() - started) / 1000;
  let beatenS: number | null = null;
  const run = async (candidates: readonly Candidate[], stage: number) => {
    const list = candidates.map(
      ({ deployment }): Job => ({
        kind: 'replay',
        input: JSON.parse(JSON.stringify({ ...of, minutes: MINUTES[stage], deployment })),
      }),
    );
    for (const [i, result] of (await jobs.run(list)).entries()) {
      const found = result as unknown as ReplayResult;
      candidates[i].results[stage] = found;
      if (stage === 2 && beatenS === null && found.goodputPerGpu >= toBeat) beatenS = elapsedS();
    }
  };
  const best = (candidates: readonly Candidate[], stage: number, count: number) => {
    const ranked = candidates.toSorted(
      (a, b) => b.results[stage].goodputPerGpu - a.results[stage].goodputPerGpu,
    );
    const covered = ranked.filter(({ results }) => results[stage].coverage >= FLOOR);
    return [...new Set([...ranked.slice(0, Math.ceil(count / 2)), ...covered, ...ranked])].slice(0, count);
  };
  try {
    const drawn = Array.from({ length: DRAWN }, (_, i) =>
      candidate(Array.from({ length: DIMENSIONS }, (_, d) => randomUniform(key, i, d))),
    );
    await run(drawn, 0);
    const parents = best(drawn, 0, PARENTS);
    const neighbours = Array.from({ length: NEIGHBOURS }, (_, i) =>
      candidate(
        parents[i % PARENTS].at.map((value, d) => {
          const [how, draw] = [randomUniform(key, -1 - i, d), randomUniform(key, -1 - i, DIMENSIONS + d)];
          if (how < 0.15) return draw;
          return how < 0.4 ? Math.min(1, Math.max(0, value + 0.3 * (draw - 0.5))) : value;
        }),
      ),
    );
    await run(neighbours, 0);
    const all = [...drawn, ...neighbours];
    const shortS = elapsedS();
    const shortCpuS = all.reduce((sum, { results }) => sum + results[0].cpuS, 0);
    const middle = best(all, 0, KEPT[0]);
    await run(middle, 1);
    const last = best(middle, 1, KEPT[1]);
    for (const one of last) await run([one], 2);
    const [winner] = best(last, 2, 1);
    const covered = last
      .filter(({ results }) => results[2].coverage >= FLOOR)
      .toSorted((a, b) => b.results[2].goodputPerGpu - a.results[2].goodputPerGpu)
      .at(0);
    yield {
      scenario,
      'short replays': all.length,
      'a second, wall': all.length / shortS,
      'a second of CPU and core': all.length / shortCpuS,
      'rank correlation, short and longer': rankCorrelation(
        middle.map(({ results }) => results[0].goodputPerGpu),
        middle.map(({ results }) => results[1].goodputPerGpu),
      ),
      'to beat': toBeat,
      'beaten after, s': beatenS,
      'search, s': elapsedS(),
      best: winner.results[2].goodputPerGpu,
      coverage: winner.results[2].coverage,
      [`best at ${100 * FLOOR} %`]: covered?.results[2].goodputPerGpu,
      'its GPUs': covered?.results[2].averageGpus,
    };
    yield `${scenario}, best: ${JSON.stringify(winner.deployment)}`;
    if (covered) yield `${scenario}, best with coverage: ${JSON.stringify(covered.deployment)}`;
  } finally {
    await jobs.close();
  }
}
