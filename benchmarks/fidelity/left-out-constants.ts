import { statedOverheads } from '@servegym/profiles';
import { isMixture, layerCount } from '../../packages/profiles/src/data/transformer-shape.ts';
import { leastSquares, robust } from '../../packages/profiles/src/fits/least-squares.ts';
import type { PointServer } from './assess-points.ts';
import { LEFT_OUT, type OperatingPoint, type PointAnswer, pointModel } from './operating-points.ts';

/**
 * Time by which each request of a burst delays the first iteration of them all, ms. Chosen on the open rows, of which the
 * TTFT grows by half a millisecond for each request in flight more than with a front end that has no limit, whatever model,
 * GPU and parallelism.
 */
export const BURST_MS = 5;

/**
 * Constants of an engine that are fitted to operating points: where each may well lie by served loads of vLLM 0.15, kernel times
 * and static batches of older versions, and how far from there. The spreads are choices, so wide that rows decide.
 */
const PRIORS = {
  iterationUs: [150, 300],
  perLayerUs: [2, 20],
  parallelPerLayerUs: [2, 20],
  /** Of a layer with a gated delta rule, and of one whose indexer chooses tokens, beyond the kernels of the tables. */
  perLinearLayerUs: [0, 20],
  perIndexerUs: [0, 20],
  prefillPerLinearLayerUs: [0, 1000],
  /** Of a layer of experts in 8-bit blocks, and of a sequence, without asynchronous scheduling. */
  paddedExpertsUs: [0, 100],
  syncPerSequenceUs: [10, 20],
  perSequenceUs: [5, 10],
  prefillPerLayerUs: [38, 200],
  requestOverheadMs: [6, 50],
  requestOverheadPerTokenUs: [2, 10],
  burstMs: [0, 5],
} as const satisfies Record<string, readonly [value: number, spread: number]>;
type Name = keyof typeof PRIORS;
const NAMES = Object.keys(PRIORS) as Name[];
type Constants = Readonly<Record<Name, number>>;

/** Errors of a point that is described well, in logarithms. */
const SPREADS = { tpotMs: 0.05, ttftMs: 0.15 };
/** Step of the finite differences, in spreads of the constants. */
const DIFFERENCE = 0.05;
/** Linear models, each at the constants that the one before fits to all rows. */
const ROUNDS = 2;
/** Last versions whose constants are apart: without asynchronous scheduling, and with kernels that were fused later. */
const LAST_APART = { vllm: '0.13', sglang: '0.5.9' };

/** The constants as they are shipped. */
function shipped(engine: OperatingPoint['engine']): Constants {
  const sync = statedOverheads(engine, LAST_APART[engine]).values;
  const newest = statedOverheads(engine, null).values;
  const { perLinearLayerUs, perIndexerUs, prefillPerLinearLayerUs } = sync;
  const others = {
    ...{ paddedExpertsUs: sync.paddedExpertsUs ?? 0, syncPerSequenceUs: sync.perSequenceUs },
    ...{ perLinearLayerUs, perIndexerUs, prefillPerLinearLayerUs },
  };
  return { ...newest, ...others, burstMs: BURST_MS };
}

/** A server with other constants than the shipped ones: the law of its profile is linear in nearly all of them. */
export function withConstants({ served, points }: PointServer, constants: Constants): PointServer {
  const { profile, weights } = served;
  const [{ engine, tensor, version, settings }] = points;
  const at = shipped(engine);
  const change = (name: Name) => constants[name] - at[name];
  const { shape } = pointModel(points[0]);
  const layers = layerCount(shape);
  const { perIndexerUs } = statedOverheads(engine, settings.release ?? version).values;
  const isUnfused = perIndexerUs > 0;
  const countOf = (holds: (layer: (typeof shape.layers)[number]) => unknown) =>
    shape.layers.reduce((sum, layer) => sum + (holds(layer) ? layer.count : 0), 0);
  const linear = countOf((layer) => layer.linear && isUnfused);
  const experts = countOf(({ feedForward }) => isMixture(feedForward));
  const isSync = profile.engine.asyncScheduling !== true;
  const sequenceUs = change(isSync ? 'syncPerSequenceUs' : 'perSequenceUs');
  const everyUs =
    change('iterationUs') +
    layers * (change('perLayerUs') + (tensor > 1 ? change('parallelPerLayerUs') : 0)) +
    linear * change('perLinearLayerUs') +
    (shape.mla?.indexer && isUnfused ? layers : 0) * change('perIndexerUs') +
    (isSync && weights === 'FP8' ? experts * change('paddedExpertsUs') : 0);
  const { law, ...variant } = profile.weights[weights]!;
  const moved = {
    ...law,
    baseUs: Math.max(0, law.baseUs + everyUs),
    perDecodeSequenceUs: Math.max(0, law.perDecodeSequenceUs + sequenceUs),
    prefillLaunchUs: Math.max(
      0,
      (law.prefillLaunchUs ?? 0) +
        layers * change('prefillPerLayerUs') +
        linear * change('prefillPerLinearLayerUs') -
        sequenceUs,
    ),
  };
  return {
    served: {
      ...served,
      profile: {
        ...profile,
        requestOverheadMs: constants.requestOverheadMs,
        requestOverheadPerTokenUs: constants.requestOverheadPerTokenUs,
        weights: { [weights]: { ...variant, law: moved } },
      },
      burstMs: constants.burstMs,
    },
    points,
  };
}

/** A latency over the measured one near some constants. */
interface LinearRow {
  readonly point: OperatingPoint;
  readonly ratio: number;
  /** By each constant, in its spreads. */
  readonly slopes: readonly number[];
  readonly spread: number;
}

type Answers = (servers: readonly PointServer[]) => Promise<readonly (readonly PointAnswer[])[]>;

/**
 * Answers of servers, by the ids of their points, under constants fitted to all rows of their engine (`none`), and to all but
 * those of the point's own group. Rows of campaigns of which something is unknown are never fitted to.
 */
export async function refit(servers: readonly PointServer[], answersOf: Answers) {
  const answers = new Map<string, Record<keyof typeof LEFT_OUT | 'none', PointAnswer>>();
  for (const [engine, own] of Map.groupBy(servers, ({ points }) => points[0].engine)) {
    let at = shipped(engine);
    let rows = await linearRows(own, at, answersOf);
    for (let round = 1; round < ROUNDS; round += 1) {
      at = fitted(rows, at);
      rows = await linearRows(own, at, answersOf);
    }
    const under = (constantsOf: (point: OperatingPoint) => Constants) =>
      answersOf(own.map((server) => withConstants(server, constantsOf(server.points[0]))));
    const without = (groupOf: (point: OperatingPoint) => string) => {
      const groups = Map.groupBy(own, ({ points }) => groupOf(points[0]));
      const others = (group: string) => rows.filter(({ point }) => groupOf(point) !== group);
      const constants = new Map([...groups.keys()].map((group) => [group, fitted(others(group), at)]));
      return under((point) => constants.get(groupOf(point))!);
    };
    const all = fitted(rows, at);
    const none = await under(() => all);
    const campaign = await without(LEFT_OUT.campaign);
    const model = await without(LEFT_OUT.model);
    for (const [i, { points }] of own.entries())
      for (const [j, { id }] of points.entries())
        answers.set(id, { none: none[i][j], campaign: campaign[i][j], model: model[i][j] });
  }
  return answers;
}

async function linearRows(servers: readonly PointServer[], at: Constants, answersOf: Answers) {
  const under = (constants: Constants) =>
    answersOf(servers.map((server) => withConstants(server, constants)));
  const base = await under(at);
  const moved: Awaited<ReturnType<Answers>>[] = [];
  for (const name of NAMES)
    moved.push(await under({ ...at, [name]: at[name] + DIFFERENCE * PRIORS[name][1] }));
  const rows: LinearRow[] = [];
  for (const [i, { points }] of servers.entries()) {
    for (const [j, point] of points.entries()) {
      if (point.unknown.length > 0) continue;
      const all = [base, ...moved].flatMap((each) => ('error' in each[i][j] ? [] : [each[i][j]]));
      if (all.length <= NAMES.length) continue;
      for (const what of ['tpotMs', 'ttftMs'] as const) {
        const [ratio, ...others] = all.map((answer) => answer[what] / point[what]);
        const slopes = others.map((other) => (other - ratio) / DIFFERENCE);
        rows.push({ point, ratio, slopes, spread: SPREADS[what] });
      }
    }
  }
  return rows;
}

/** Least share of a latency that a linear model may leave of it. */
const LEAST_SHARE = 0.05;

/** Constants that suit rows, which are linear around others. Robust, since some rows are of servers that were disturbed. */
function fitted(rows: readonly LinearRow[], at: Constants): Constants {
  const spreads = NAMES.map((name) => PRIORS[name][1]);
  const { parameters } = leastSquares(
    (steps) => [
      ...rows.map(({ ratio, slopes, spread }) => {
        const moved = slopes.reduce((sum, slope, i) => sum + slope * steps[i], ratio);
        return robust(Math.log(Math.max(LEAST_SHARE * ratio, moved)) / spread);
      }),
      ...NAMES.map((name, i) => steps[i] + (at[name] - PRIORS[name][0]) / spreads[i]),
    ],
    NAMES.map(() => 0),
    {
      tolerance: 1e-6,
      bounds: {
        lower: NAMES.map((name, i) => -at[name] / spreads[i]),
        upper: NAMES.map(() => Number.POSITIVE_INFINITY),
      },
    },
  );
  const entries = NAMES.map((name, i) => [name, at[name] + parameters[i] * spreads[i]]);
  return Object.fromEntries(entries) as unknown as Constants;
}
