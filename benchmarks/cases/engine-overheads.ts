import {
  engineOverheads,
  findGpu,
  findModel,
  type ReadTables,
  readOperatorTables,
  tableProfile,
} from '@servegym/profiles';
import { Matrix } from 'ml-matrix';
import type { EngineOverheads } from '../../packages/profiles/src/data/engine-constants.ts';
import { leastSquares } from '../../packages/profiles/src/fits/least-squares.ts';
import {
  LATENCIES,
  type LoadLatencies,
  latencyErrors,
  loadLatencies,
  type ServedLoad,
} from '../../packages/profiles/src/fits/served-load.ts';
import { kindOf, readServedLoads } from '../fidelity/assess-fidelity.ts';
import { benchmark, median, required } from '../harness.ts';

/** Overheads that are fitted: where each may well lie, and its relative spread. */
const PRIORS = {
  contextFactor: [1.1, 0.2],
  iterationUs: [150, 0.7],
  perLayerUs: [2, 1],
  parallelPerLayerUs: [2, 1],
  prefillPerLayerUs: [38, 0.5],
  perSequenceUs: [5, 1],
  requestOverheadMs: [6, 0.5],
} as const satisfies Partial<Record<keyof EngineOverheads, readonly [value: number, spread: number]>>;
const NAMES = Object.keys(PRIORS) as (keyof typeof PRIORS)[];
/** Errors that a load well described has, relative. */
const SPREADS = { e2eMean: 0.02, ttftMean: 0.05 } as const;
const DIFFERENCE = 0.03;
/** Relative gain of a step at which a fit ends. */
const TOLERANCE = 1e-3;
/** Share of each load that is simulated. */
const SHARE = 0.2;

const start = NAMES.map((name) => Math.log(PRIORS[name][0]));

export default benchmark({
  what: 'Served loads of vLLM 0.15 (`--data FOLDER`, docs/reference-data.md) on profiles made from kernel tables (`--tables FOLDER`, the unpacked aiconfigurator-core): the overheads fitted to all loads, errors of each load as the overheads of that version are shipped, and with overheads fitted to the loads of other models and GPUs, percent. Robust (Cauchy), since runs with equal settings differ by up to 13 %. Takes minutes.',
  options: { data: required, tables: required },
  async *run({ data, tables: folder }) {
    const shipped = engineOverheads('vllm', '0.15');
    const loads = await readServedLoads(data);
    const tablesOf = new Map(
      await Promise.all(
        [...new Set(loads.map(({ gpu }) => gpu))].map(
          async (gpu) => [gpu, await readOperatorTables(folder, findGpu(gpu), 'vllm')] as const,
        ),
      ),
    );

    const served = servedErrors(loads, tablesOf, shipped);
    const all = [...loads.keys()];
    const { parameters: fitted } = leastSquares((logs) => served.residualsOf(all, logs), start, {
      difference: DIFFERENCE,
      tolerance: TOLERANCE,
    });
    yield { ...served.overheadsAt(fitted) };
    const base = served.residualsOf(all, fitted);
    const columns = fitted.map((log, i) =>
      served
        .residualsOf(all, fitted.with(i, log + DIFFERENCE))
        .map((moved, row) => (moved - base[row]) / DIFFERENCE),
    );
    const groupOf = ({ model, gpu }: ServedLoad) => `${model} on ${gpu}`;
    const leftOut: LoadLatencies[] = [];
    for (const group of new Set(loads.map(groupOf))) {
      const others = all.filter((l) => groupOf(loads[l]) !== group);
      const rows = [
        ...others.flatMap((l) => [2 * l, 2 * l + 1]),
        ...NAMES.map((_, i) => 2 * loads.length + i),
      ];
      const { parameters } = leastSquares((logs) => served.residualsOf(others, logs), fitted, {
        slopes: new Matrix(rows.map((row) => columns.map((column) => column[row]))),
        tolerance: TOLERANCE,
      });
      const own = all.filter((l) => groupOf(loads[l]) === group);
      const errors = served.errorsOf(own, served.overheadsAt(parameters));
      for (const [i, l] of own.entries()) leftOut[l] = errors[i];
    }
    const asShipped = served.errorsOf(all, shipped);
    const percent = (error: number) => 100 * error;
    for (const [l, load] of loads.entries())
      yield {
        run: load.run,
        model: findModel(load.model).name,
        gpus: `${load.tp} x ${load.gpu}`,
        ...Object.fromEntries(LATENCIES.map((what) => [what, percent(asShipped[l][what])])),
        ...Object.fromEntries(LATENCIES.map((what) => [`left out: ${what}`, percent(leftOut[l][what])])),
      };
    const kinds = loads.map(kindOf);
    for (const kind of new Set([...kinds, 'all'])) {
      const own = all.filter((l) => kind === 'all' || kinds[l] === kind);
      for (const [name, errors] of [
        ['as shipped', asShipped],
        ['left out', leftOut],
      ] as const)
        yield {
          medians: kind,
          loads: own.length,
          errors: name,
          ...Object.fromEntries(
            LATENCIES.map((what) => [what, percent(median(own.map((l) => Math.abs(errors[l][what]))))]),
          ),
        };
    }
  },
});

/** Errors of served loads, named by their places in the list, under any overheads. */
function servedErrors(
  loads: readonly ServedLoad[],
  tablesOf: ReadonlyMap<string, ReadTables>,
  shipped: EngineOverheads,
) {
  const overheadsAt = (logs: readonly number[]): EngineOverheads => ({
    ...shipped,
    ...Object.fromEntries(NAMES.map((name, i) => [name, Math.exp(logs[i])])),
  });
  const errorsOf = (some: readonly number[], overheads: EngineOverheads): LoadLatencies[] => {
    const profiles = new Map<string, ReturnType<typeof tableProfile>['profile']>();
    return some.map((l) => {
      const { gpu, model, tp, weights } = loads[l];
      const key = JSON.stringify([gpu, model, tp, weights]);
      const { tables, measuredOn, engine } = tablesOf.get(gpu)!;
      const profile =
        profiles.get(key) ??
        tableProfile(tables, {
          ...{ gpu: findGpu(gpu), measuredOn, model: findModel(model), weights, engine, overheads },
          ...{ parallel: { tensor: tp, expert: 1, data: 1, pipeline: 1 }, source: 'kernel tables' },
          command: 'benchmarks/run.ts engine-overheads',
        }).profile;
      profiles.set(key, profile);
      return latencyErrors(loads[l], loadLatencies(loads[l], profile, SHARE));
    });
  };
  /** Two of each load, then those of the priors. */
  const residualsOf = (some: readonly number[], logs: readonly number[]): number[] => [
    ...errorsOf(some, overheadsAt(logs)).flatMap((error) =>
      (['e2eMean', 'ttftMean'] as const).map((what) => robust(Math.log1p(error[what]) / SPREADS[what])),
    ),
    ...logs.map((log, i) => (log - start[i]) / PRIORS[NAMES[i]][1]),
  ];
  return { overheadsAt, errorsOf, residualsOf };
}

/** Its square grows with the logarithm of the residual's. */
function robust(residual: number): number {
  return Math.sign(residual) * Math.sqrt(Math.log1p(residual ** 2));
}
