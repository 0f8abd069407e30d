// Fits the constants of vLLM V1 (`packages/simulator/src/calibration/engine-constants.ts`) to served loads: those of
// `--data FOLDER` (docs/reference-data.md), or the nine that the tests hold. Needs about a minute. `--leave-out
// load|model`: the errors of each load under constants fitted anew to the others, or to the loads of other models.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  type EngineConstants,
  FITTED_CONSTANTS,
  fitEngineConstants,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
} from '@servegym/simulator/calibration';
import { summarize } from '@servegym/simulator/statistics';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/tuning/fidelity';
import { MEASURED_LOADS } from '../packages/tuning/src/fidelity/measured-figures.fixture.ts';

const { values } = parseArgs({ options: { data: { type: 'string' }, 'leave-out': { type: 'string' } } });
const { servedLoads } = REFERENCE_DATA;
const all =
  values.data === undefined
    ? MEASURED_LOADS
    : parseServedLoads(
        readFileSync(findReferenceFiles(values.data, [servedLoads])[0], 'utf8'),
        servedLoads.path,
      );
const leaveOut = values['leave-out'];

if (leaveOut === undefined) {
  const constants = fitEngineConstants(all);
  console.log(
    Object.fromEntries(
      FITTED_CONSTANTS.map((name) => [name, Number(Number(constants[name]).toPrecision(3))]),
    ),
  );
  report(all.map((load) => errorsOf(load, constants)));
} else {
  const group = (load: ServedLoad) => (leaveOut === 'model' ? load.model : load.run);
  report(
    [...new Set(all.map(group))].flatMap((left) => {
      const constants = fitEngineConstants(all.filter((load) => group(load) !== left));
      return all.filter((load) => group(load) === left).map((load) => errorsOf(load, constants));
    }),
  );
}

/** Relative errors, percent. */
function errorsOf(load: ServedLoad, constants: EngineConstants) {
  const run = simulateServedLoad(load, constants);
  const ttft = summarize(run.ttftMs);
  const percent = (simulated: number, measured: number) =>
    Number((100 * (simulated / measured - 1)).toFixed(1));
  return {
    run: load.run,
    model: load.model.replace(/^.*\//, ''),
    'TTFT mean': percent(ttft.mean, load.ttft_mean_ms),
    'TTFT p99': percent(ttft.p99, load.ttft_p99_ms),
    'E2E mean': percent(summarize(run.e2eMs).mean, load.e2e_mean_ms),
  };
}

function report(errors: readonly ReturnType<typeof errorsOf>[]): void {
  console.table(errors);
  for (const what of ['TTFT mean', 'TTFT p99', 'E2E mean'] as const) {
    const sizes = errors.map((each) => Math.abs(each[what])).sort((a, b) => a - b);
    const median = (sizes[(sizes.length - 1) >> 1] + sizes[sizes.length >> 1]) / 2;
    console.log(`${what}: median ${median.toFixed(1)} %`);
  }
}
