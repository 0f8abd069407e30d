// Fits the constants of vLLM V1 (`packages/simulator/src/calibration/engine-constants.ts`) to served loads: the mean
// end-to-end latency and the mean time to first token of each, with robust residuals, since the lengths behind some
// of the loads are only known as means. Takes the file of loads as its argument; needs about a minute.
// `--leave-out`: the errors of each model's loads under constants fitted to the other models.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { summarize } from '@servegym/simulator';
import {
  type EngineConstants,
  leastSquares,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
  VLLM_V1,
} from '@servegym/simulator/calibration';

/** Where each constant may well lie: a value, and its relative spread. */
const PRIOR: Partial<Record<keyof EngineConstants, readonly [value: number, spread: number]>> = {
  baseUs: [1000, 0.7],
  perLayerUs: [20, 1],
  parallelPerLayerUs: [20, 1],
  perDecodeSequenceUs: [10, 1],
  weightReadEfficiency: [0.85, 0.1],
  mixtureReadEfficiency: [0.85, 0.3],
  kvReadEfficiency: [0.9, 0.2],
  computeEfficiency: [0.65, 0.1],
  allReduceEfficiency: [0.7, 0.5],
  requestOverheadMs: [5, 0.7],
  requestOverheadIterations: [0.8, 0.7],
};
/** Error that a load well described has, relative. */
const E2E_SPREAD = 0.03;
const TTFT_SPREAD = 0.08;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'leave-out': { type: 'boolean', default: false } },
});
const file = positionals[0] ?? '../shared/data/measured/vllm-0.15-served-load.json';
const all = parseServedLoads(readFileSync(file, 'utf8'), file);
const names = Object.keys(PRIOR) as (keyof typeof PRIOR)[];
const prior = names.map((name) => PRIOR[name]!);

if (values['leave-out']) {
  const errors = [...new Set(all.map(({ model }) => model))].flatMap((model) => {
    const constants = fit(all.filter((load) => load.model !== model));
    return all.filter((load) => load.model === model).map((load) => errorsOf(load, constants));
  });
  console.table(errors);
} else {
  const constants = fit(all);
  console.log(
    Object.fromEntries(names.map((name) => [name, Number(Number(constants[name]).toPrecision(3))])),
  );
  console.table(all.map((load) => errorsOf(load, constants)));
}

function fit(loads: readonly ServedLoad[]): EngineConstants {
  const { parameters } = leastSquares(
    (logs) => {
      const constants = constantsAt(logs);
      return [
        ...loads.flatMap((load) => {
          const run = simulateServedLoad(load, constants);
          return [
            robust(Math.log(summarize(run.e2eMs).mean / load.e2e_mean_ms) / E2E_SPREAD),
            robust(Math.log(summarize(run.ttftMs).mean / load.ttft_mean_ms) / TTFT_SPREAD),
          ];
        }),
        ...logs.map((log, i) => (log - Math.log(prior[i]![0])) / prior[i]![1]),
      ];
    },
    prior.map(([value]) => Math.log(value)),
    { difference: 0.01, tolerance: 1e-6 },
  );
  return constantsAt(parameters);
}

/** Relative errors, percent. */
function errorsOf(load: ServedLoad, constants: EngineConstants) {
  const run = simulateServedLoad(load, constants);
  const ttft = summarize(run.ttftMs);
  const percent = (simulated: number, measured: number) =>
    Number((100 * (simulated / measured - 1)).toFixed(1));
  return {
    run: load.run,
    model: load.model,
    'TTFT mean': percent(ttft.mean, load.ttft_mean_ms),
    'TTFT p99': percent(ttft.p99, load.ttft_p99_ms),
    'E2E mean': percent(summarize(run.e2eMs).mean, load.e2e_mean_ms),
  };
}

function constantsAt(logs: readonly number[]): EngineConstants {
  return { ...VLLM_V1, ...Object.fromEntries(names.map((name, i) => [name, Math.exp(logs[i]!)])) };
}

/** Its square grows with the residual beyond one spread, not with its square. */
function robust(residual: number): number {
  return Math.sign(residual) * Math.sqrt(2 * (Math.sqrt(1 + residual ** 2) - 1));
}
