import { readFile } from 'node:fs/promises';
import { findGpu } from '@servegym/profiles';
import { mean, quantile } from '@servegym/simulator/statistics';
import { chanceWithin, PROFILE_ERRORS } from '../../packages/operators/src/search/profile-error.ts';
import type { OperatingPoint, PointRow } from '../fidelity/operating-points.ts';
import { benchmark, type Row } from '../harness.ts';

interface Latencies {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

type Estimator = (row: PointRow) => Latencies | null;

type Case = ReturnType<typeof findCases>[number];

const QUARTILES = [0.25, 0.5, 0.75];
const FIRST = 3;

const ESTIMATORS: Readonly<Record<string, Estimator>> = {
  ServeGym: ({ ours }) => ('error' in ours ? null : ours),
  aiconfigurator: ({ theirs }) => (theirs === null || 'error' in theirs ? null : theirs),
};

export default benchmark({
  what: `Whether the first three configurations that the simulator would buy hold the one that measurements call cheapest, on the open operating points of NVIDIA's aiconfigurator-core, beside aiconfigurator's own answers. FILE is made by \`run.ts fidelity --tables FOLDER --answers FILE --results points.json\`.
A case is a model with nominal lengths, and an SLO: a limit of the mean TTFT and one of the mean TPOT, each the lower quartile, the median or the upper quartile of what was measured for that model and those lengths. A configuration is an engine, a GPU, a precision and a division over GPUs. It costs what a million output tokens cost at the cheapest of the measured concurrencies that meets the SLO; an estimator ranks the configurations by the same figure with the latencies that it predicts. Behind those that meet the SLO by its latencies come the others, by cost over the chance that they meet it with the error of profiles from kernel tables. Versions of an engine are one configuration. Cases with three configurations or fewer are left out, as are those that no measured point meets. A measurement that stands under two models counts once.`,
  options: {},
  arguments: 'FILE',
  async *run(_, [path]) {
    if (path === undefined) throw new Error('expected the JSON of `run.ts fidelity`, got none');
    const { points } = JSON.parse(await readFile(path, 'utf8')) as { readonly points: readonly PointRow[] };
    const cases = findCases(measuredOnce(points));
    yield rowOf('all', cases);
    yield rowOf('all, with copies under a second model', findCases(points));
    for (const [model, of] of [...Map.groupBy(cases, (each) => each.model)].sort()) yield rowOf(model, of);
    yield* chosenOnHalf(cases);
  },
});

/** Rules of what stands where by cost, by whether the limits are met by prediction, and by the chance that they are. */
const RULES: Readonly<Record<string, RankingRule>> = {
  'met first, others by cost over chance': (cost, chance, isMet) => [
    isMet ? 0 : 1,
    isMet ? cost : cost / chance,
  ],
  'met first, others by chance': (cost, chance, isMet) => [isMet ? 0 : 1, isMet ? cost : 1 / chance],
  'met alone': (cost, _, isMet) => [isMet ? 0 : Number.POSITIVE_INFINITY, cost],
  'all by cost over chance': (cost, chance) => [0, cost / chance],
  'all by cost over the root of the chance': (cost, chance) => [0, cost / Math.sqrt(chance)],
};
type RankingRule = (cost: number, chance: number, isMet: boolean) => readonly [group: number, order: number];
const OURS = 'met first, others by cost over chance';

/** The rule that is best on half of the models and lengths, on the other half; both ways. */
function* chosenOnHalf(cases: readonly Case[]): Generator<Row> {
  const groups = [...new Set(cases.map(({ rows }) => rows))];
  const halves = [0, 1].map((half) => cases.filter(({ rows }) => groups.indexOf(rows) % 2 === half));
  const share = (of: readonly Case[], rule: RankingRule) =>
    100 * mean(of.map((each) => Number(firstOf(each, ESTIMATORS.ServeGym, rule).rank >= 0)));
  for (const [half, own] of halves.entries()) {
    const others = halves[1 - half];
    const scores = Object.entries(RULES).map(([name, rule]) => ({ name, on: share(own, rule), rule }));
    const best = scores.reduce((a, b) => (b.on > a.on ? b : a));
    yield {
      'chosen on': `half ${half + 1}, ${own.length} cases`,
      rule: best.name,
      'there, %': best.on,
      'on the other half, %': share(others, best.rule),
      'cases there': others.length,
      'as `plan`, there, %': share(own, RULES[OURS]),
      'on the other half, %, as `plan`': share(others, RULES[OURS]),
    };
  }
}

/** What an estimator ranks first, and the place of the measured cheapest among it; below 0 where it is none of them. */
function firstOf({ rows, slo, measured }: Case, estimator: Estimator, rule: RankingRule) {
  const chosen = ranked(rows, estimator, slo, rule)
    .slice(0, FIRST)
    .map(({ configuration }) => configuration);
  return { chosen, rank: chosen.indexOf(measured[0].configuration) };
}

/** USD a million output tokens of a closed loop with these latencies. */
function costOf(
  { system, tensor, data, concurrency, outputTokens }: OperatingPoint,
  { ttftMs, tpotMs }: Latencies,
): number {
  const gpu = findGpu(system.replace('_sxm', ''));
  if (gpu.usdPerHour === 0) throw new Error(`no list price of ${gpu.name}`);
  const tokensPerS = (concurrency * outputTokens) / ((ttftMs + (outputTokens - 1) * tpotMs) / 1000);
  return (gpu.usdPerHour * tensor * data) / 3600 / (tokensPerS / 1e6);
}

const modelOf = (id: string) => id.replace(/^.*\//, '').replace(/-FP8$/, '');
const configurationOf = ({ engine, system, precision, tensor, data, expert }: OperatingPoint) =>
  JSON.stringify([engine, system, precision, tensor, data, expert]);

/** Configurations in the order of a rule by the latencies of an estimator, without those that it leaves out. */
function ranked(rows: readonly PointRow[], estimator: Estimator, slo: Latencies, rule: RankingRule) {
  const best = new Map<string, { readonly place: ReturnType<RankingRule>; readonly cost: number }>();
  for (const row of rows) {
    const found = estimator(row);
    if (found === null) continue;
    const cost = costOf(row.point, found);
    const isMet = found.ttftMs <= slo.ttftMs && found.tpotMs <= slo.tpotMs;
    const latencies = (['ttft', 'tpot'] as const).map((metric) => ({
      ...{ metric, ms: found[`${metric}Ms`], limitMs: slo[`${metric}Ms`] },
    }));
    const chance = Math.max(Number.MIN_VALUE, chanceWithin(latencies, PROFILE_ERRORS.tables));
    const place = rule(cost, chance, isMet);
    const key = configurationOf(row.point);
    const known = best.get(key);
    if (Number.isFinite(place[0]) && (known === undefined || comparePlaces(place, known.place) < 0))
      best.set(key, { place, cost });
  }
  return [...best]
    .sort(([, a], [, b]) => comparePlaces(a.place, b.place))
    .map(([configuration, { cost }]) => ({ configuration, cost }));
}

function comparePlaces(a: ReturnType<RankingRule>, b: ReturnType<RankingRule>): number {
  return a[0] - b[0] || a[1] - b[1];
}

function slosOf(rows: readonly PointRow[]): Latencies[] {
  const quartiles = (name: keyof Latencies) => {
    const ascending = rows.map(({ point }) => point[name]).sort((a, b) => a - b);
    return QUARTILES.map((p) => quantile(ascending, p));
  };
  return quartiles('ttftMs').flatMap((ttftMs) => quartiles('tpotMs').map((tpotMs) => ({ ttftMs, tpotMs })));
}

const countOf = (rows: readonly PointRow[]) => new Set(rows.map(({ point }) => configurationOf(point))).size;

/** Points without copies: where a measurement stands under two models, to the last digit, that with more points keeps it. */
function measuredOnce(rows: readonly PointRow[]): PointRow[] {
  const measurement = (point: OperatingPoint) => {
    const { inputTokens, outputTokens, concurrency, ttftMs, tpotMs } = point;
    return [configurationOf(point), inputTokens, outputTokens, concurrency, ttftMs, tpotMs].join();
  };
  const byModel = [...Map.groupBy(rows, ({ point }) => modelOf(point.model))];
  byModel.sort(([, a], [, b]) => a.length - b.length);
  const owners = new Map(
    byModel.flatMap(([model, own]) => own.map(({ point }) => [measurement(point), model])),
  );
  return rows.filter(({ point }) => owners.get(measurement(point)) === modelOf(point.model));
}

/** Models with nominal lengths, and SLOs that a measured point of them meets; `measured`: configurations that do, the cheapest first. */
function findCases(rows: readonly PointRow[]) {
  const groups = Map.groupBy(rows, ({ point: { model, inputTokens, outputTokens } }) =>
    JSON.stringify([modelOf(model), inputTokens, outputTokens]),
  );
  return [...groups.values()]
    .filter((rows) => countOf(rows) > FIRST)
    .flatMap((rows) =>
      slosOf(rows).map((slo) => ({
        ...{ model: modelOf(rows[0].point.model), rows, slo },
        measured: ranked(rows, ({ point }) => point, slo, RULES['met alone']),
      })),
    )
    .filter(({ measured }) => measured.length > 0);
}

/** Figures of one estimator. The cost is that of the best of its first three, over the least, where one of them meets the SLO. */
function figuresOf(name: string, cases: readonly Case[], estimator: Estimator): Row {
  const outcomes = cases.map((each) => {
    const { chosen, rank } = firstOf(each, estimator, RULES[OURS]);
    const best = each.measured.find(({ configuration }) => chosen.includes(configuration));
    return { rank, extra: best && best.cost / each.measured[0].cost - 1 };
  });
  const percent = (isCounted: (outcome: (typeof outcomes)[number]) => boolean) =>
    Math.round((100 * outcomes.filter(isCounted).length) / outcomes.length);
  const extras = outcomes.flatMap(({ extra }) => extra ?? []);
  return {
    [`${name}: among three, %`]: percent(({ rank }) => rank >= 0),
    [`${name}: first, %`]: percent(({ rank }) => rank === 0),
    [`${name}: best of three costs more, %`]: Math.round(100 * mean(extras)),
    [`${name}: none meets, %`]: percent(({ extra }) => extra === undefined),
  };
}

function rowOf(name: string, cases: readonly Case[]): Row {
  return {
    'rows of': name,
    cases: cases.length,
    configurations: mean(cases.map(({ rows }) => countOf(rows))),
    'by chance, %': Math.round(100 * mean(cases.map(({ rows }) => FIRST / countOf(rows)))),
    ...Object.assign({}, ...Object.entries(ESTIMATORS).map(([of, each]) => figuresOf(of, cases, each))),
  };
}
