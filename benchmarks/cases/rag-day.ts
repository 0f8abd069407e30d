import { blockResamples, mean, percentileInterval, rankCorrelation } from '@servegym/simulator/statistics';
import { benchmark, type Row, required, timed } from '../harness.ts';
import { COPIES, type Hour, type PublishedHour, readDay } from '../rag-day/day.ts';
import { type Deployment, Engines, type HourScore, replay, type Score } from '../rag-day/replay.ts';
import { search } from '../rag-day/search.ts';
import study from '../rag-day/study.json' with { type: 'json' };

/** Figures of an hour that are ranked: each means the better the larger or, for times, the smaller. */
const RANKED: Readonly<Record<string, (hour: HourScore) => number>> = {
  'goodput a GPU': ({ compliantTokens, gpuHours }) => compliantTokens / gpuHours,
  coverage: ({ compliant, requests }) => compliant / requests,
  'TTFT mean': ({ ttftMs }) => ttftMs,
  'ITL mean': ({ itlMs }) => itlMs,
};

export default benchmark({
  what: "NVIDIA's search for a DeepSeek-V3 fleet on H200, again: a day of RAGPulse made as near to theirs as another revision of the recording allows, their three winners on it, and how our scores rank beside what they publish hour by hour. Both are simulations with timing models of their own: compare ranks and speed. `--kernels-alone` takes iterations without the engine's own time, as theirs. `--search static,router,planner` searches their space with `--threads`; `--ranks N` then compares the ranks of N drawn points on the two parts of the day. Needs `--data FOLDER` (docs/reference-data.md) and the kernel tables of `--tables` (docs/kernel-tables.md).",
  options: {
    ...{ data: required, tables: required, copies: COPIES, seed: 0 },
    ...{ 'kernels-alone': false, search: '', threads: 2, ranks: 0 },
  },
  async *run({ data, tables, copies, seed, search: searched, threads, ranks, ...of }) {
    const { result, wallS } = await timed(() => readDay(data, copies, seed));
    const { day, published } = result;
    const hours = published.filter(({ scenario }) => scenario === 'static');
    const total = (values: Iterable<number>) => Array.from(values).reduce((sum, value) => sum + value, 0);
    const dayRow = (
      name: string,
      requests: Iterable<number>,
      input: Iterable<number>,
      output: Iterable<number>,
    ) => ({
      ...{
        day: name,
        requests: total(requests),
        'input tokens': total(input),
        'output tokens': total(output),
      },
    });
    const theirs = (of: keyof Hour) => hours.map((hour) => hour[of]);
    yield dayRow('theirs', theirs('requests'), theirs('inputTokens'), theirs('outputTokens'));
    const ones = day.arrivalMs.map(() => 1);
    yield dayRow(`ours, made in ${wallS.toFixed(1)} s`, ones, day.inputTokens, day.outputTokens);
    const engines = new Engines(tables, of['kernels-alone']);
    const scores = new Map<string, Score>();
    for (const { scenario, ...winner } of study.winners) {
      const deployment: Deployment = winner;
      await engines.load(deployment);
      const { result: score, cpuS } = await timed(() => replay(day, deployment, engines));
      scores.set(scenario, score);
      yield {
        winner: scenario,
        'goodput a GPU, theirs': winner.goodputPerGpu,
        ours: score.goodputPerGpu,
        'coverage, theirs': winner.coverage,
        'coverage, ours': score.coverage,
        'GPUs, theirs': winner.averageGpus,
        'GPUs, ours': score.averageGpus,
        'prefix reuse, theirs': winner.prefixReuse,
        'prefix reuse, ours': score.prefixReuse,
        'replay, theirs, s': winner.replayS,
        'ours, CPU s': cpuS,
      };
    }
    yield* rankRows(published, scores);
    const kernelsAlone = of['kernels-alone'];
    for (const scenario of searched.split(',').filter(Boolean)) {
      const toBeat = scores.get(scenario)?.goodputPerGpu;
      if (toBeat === undefined) throw new Error(`expected static, router or planner, got ${scenario}`);
      const job = { data, tables, kernelsAlone, copies, seed };
      yield* search(scenario, job, { threads, toBeat, ranks });
    }
  },
});

/** Rank correlations over hours and winners, with intervals over resampled hours, and winners that an hour orders alike. */
function* rankRows(published: readonly PublishedHour[], scores: ReadonlyMap<string, Score>): Generator<Row> {
  for (const [figure, of] of Object.entries(RANKED)) {
    const theirs = [...scores.keys()].map((scenario) =>
      published.filter((hour) => hour.scenario === scenario).map(of),
    );
    const ours = [...scores.values()].map(({ hours }) => hours.map(of));
    const over = (weights: ArrayLike<number>) => {
      const pairs = theirs.flatMap((hours, winner) =>
        hours.flatMap((value, hour) =>
          Array.from({ length: weights[hour] }, () => [value, ours[winner][hour]] as const),
        ),
      );
      return rankCorrelation(
        pairs.map(([a]) => a),
        pairs.map(([, b]) => b),
      );
    };
    const { low, high } = percentileInterval(blockResamples(24, 0).map(over));
    const alike = theirs.flatMap((hours, a) =>
      theirs.slice(a + 1).flatMap((others, k) =>
        hours.map((value, hour) => {
          const our = ours[a][hour] - ours[a + 1 + k][hour];
          return Number(Math.sign(value - others[hour]) === Math.sign(our));
        }),
      ),
    );
    yield {
      'over hours and winners': figure,
      'rank correlation': over(new Uint8Array(24).fill(1)),
      ...{ low, high, 'winners ordered alike in an hour, %': 100 * mean(alike) },
    };
  }
}
