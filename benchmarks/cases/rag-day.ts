import { readFileSync } from 'node:fs';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { blockResamples, percentileInterval } from '@servegym/simulator/statistics';
import { benchmark, type Row, required, timed } from '../harness.ts';
import { COPIES, chooseDay, copyDay } from '../rag-day/day.ts';
import { type Deployment, Engines, type HourScore, replay, type Score } from '../rag-day/replay.ts';
import study from '../rag-day/study.json' with { type: 'json' };

/** Day of the recording, from 0, that the study takes. */
const DAY = 4;

/** What the study publishes of an hour of a winner. */
interface PublishedHour extends Readonly<HourScore> {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly scenario: string;
}

/** Figures of an hour that are ranked: each means the better the larger or, for times, the smaller. */
const RANKED: Readonly<Record<string, (hour: HourScore) => number>> = {
  'goodput a GPU': ({ compliantTokens, gpuHours }) => compliantTokens / gpuHours,
  coverage: ({ compliant, requests }) => compliant / requests,
  'TTFT mean': ({ ttftMs }) => ttftMs,
  'ITL mean': ({ itlMs }) => itlMs,
};

export default benchmark({
  what: "NVIDIA's search for a DeepSeek-V3 fleet on H200, again: a day of RAGPulse made as near to theirs as another revision of the recording allows, their three winners on it, and how our scores rank beside what they publish hour by hour. Both are simulations with timing models of their own: compare ranks and speed. `--kernels-alone` takes iterations without the engine's own time, as theirs. Needs `--data FOLDER` (docs/reference-data.md) and the kernel tables of `--tables` (docs/kernel-tables.md).",
  options: { data: required, tables: required, copies: COPIES, seed: 0, 'kernels-alone': false },
  async *run({ data, tables, copies, seed, ...of }) {
    const { ragPulse, ragPulseStudy } = REFERENCE_DATA;
    const [folder, hourly] = findReferenceFiles(data, [ragPulse, ragPulseStudy]);
    const published = publishedHours(hourly);
    const hours = published.filter(({ scenario }) => scenario === 'static');
    const recorded = (await readTrace(folder)).trace;
    const { result: day, wallS } = await timed(() =>
      copyDay(recorded, chooseDay(recorded, hours, DAY, seed), hours, copies, seed),
    );
    const total = (values: Iterable<number>) => Array.from(values).reduce((sum, value) => sum + value, 0);
    yield {
      day: 'theirs',
      requests: total(hours.map(({ requests }) => requests)),
      'input tokens': total(hours.map(({ inputTokens }) => inputTokens)),
      'output tokens': total(hours.map(({ outputTokens }) => outputTokens)),
    };
    yield {
      day: `ours, made in ${wallS.toFixed(1)} s`,
      requests: day.arrivalMs.length,
      'input tokens': total(day.inputTokens),
      'output tokens': total(day.outputTokens),
    };
    const engines = new Engines(tables, of['kernels-alone']);
    const scores = new Map<string, Score>();
    for (const { scenario, ...winner } of study.winners) {
      const deployment: Deployment = winner;
      // The kernel tables are read once.
      if (deployment.prefill) await engines.profile(deployment.engine, deployment.prefill.parallel);
      await engines.profile(deployment.engine, deployment.decode.parallel);
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
  },
});

function publishedHours(path: string): PublishedHour[] {
  const [header, ...lines] = readFileSync(path, 'utf8').trim().split('\n');
  const names = header.trim().split(',');
  return lines.map((line) => {
    const fields = line.trim().split(',');
    const of = (name: string) => Number(fields[names.indexOf(name)]);
    return {
      scenario: fields[names.indexOf('scenario')],
      ...{ requests: of('requests'), inputTokens: of('input_tokens'), outputTokens: of('output_tokens') },
      ...{ compliant: of('compliant_requests'), compliantTokens: of('compliant_output_tokens') },
      ...{ ttftMs: of('ttft_mean_ms'), itlMs: of('itl_mean_ms'), gpuHours: of('gpu_hours') },
    };
  });
}

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
      return spearman(
        pairs.map(([a]) => a),
        pairs.map(([, b]) => b),
      );
    };
    const { low, high } = percentileInterval(blockResamples(24, 0).map(over));
    let alike = 0;
    let pairs = 0;
    for (let a = 0; a < theirs.length; a++) {
      for (let b = a + 1; b < theirs.length; b++) {
        for (let hour = 0; hour < 24; hour++, pairs++) {
          const [their, our] = [theirs[a][hour] - theirs[b][hour], ours[a][hour] - ours[b][hour]];
          alike += Number(Math.sign(their) === Math.sign(our));
        }
      }
    }
    yield {
      'over hours and winners': figure,
      'rank correlation': over(new Uint8Array(24).fill(1)),
      ...{ low, high },
      'winners ordered alike in an hour, %': (100 * alike) / pairs,
    };
  }
}

/** Spearman's rank correlation; equal values share their ranks. */
export function spearman(a: readonly number[], b: readonly number[]): number {
  const [ranksA, ranksB] = [ranks(a), ranks(b)];
  const mean = (a.length - 1) / 2;
  const product = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, rank, i) => sum + (rank - mean) * (y[i] - mean), 0);
  return product(ranksA, ranksB) / Math.sqrt(product(ranksA, ranksA) * product(ranksB, ranksB));
}

function ranks(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const found = new Array<number>(values.length);
  for (let from = 0, to = 0; from < order.length; from = to) {
    while (to < order.length && values[order[to]] === values[order[from]]) to++;
    for (let at = from; at < to; at++) found[order[at]] = (from + to - 1) / 2;
  }
  return found;
}
