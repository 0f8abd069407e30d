import {
  fitEngineConstants,
  fittedConstants,
  leftOutConstants,
} from '../../packages/profiles/src/fits/fit-engine-constants.ts';
import {
  LATENCIES,
  latencies,
  latencyErrors,
  simulateServedLoad,
} from '../../packages/profiles/src/fits/served-load.ts';
import { readServedLoads } from '../fidelity/assess-fidelity.ts';
import { MEASURED_LOADS } from '../fidelity/measured-figures.fixture.ts';
import { benchmark, median, text } from '../harness.ts';

export default benchmark({
  what: 'Fits the constants of vLLM V1 (`packages/profiles/src/data/engine-constants.ts`) to served loads: those of `--data FOLDER` (docs/reference-data.md), or the 21 that the tests hold. Takes minutes. `--leave-out`: the errors of each load under constants fitted to the loads of other models and GPUs.',
  options: { data: text, 'leave-out': false },
  async *run({ data, 'leave-out': leaveOut }) {
    const all = data === undefined ? [...MEASURED_LOADS] : await readServedLoads(data);
    const constants = fitEngineConstants(all);
    for (const [constant, value] of Object.entries(fittedConstants(constants))) yield { constant, value };
    const each = leaveOut ? leftOutConstants(all, constants) : all.map(() => constants);
    const errors = all.map((load, i) => {
      const relative = latencyErrors(load, simulateServedLoad(load, each[i]));
      return latencies((what) => Number((100 * relative[what]).toFixed(1)));
    });
    for (const [i, { run, model, tp, gpu }] of all.entries())
      yield { run, model: model.replace(/^.*\//, ''), gpu: `${tp} x ${gpu}`, ...errors[i] };
    for (const figure of LATENCIES)
      yield { figure, 'median error, %': median(errors.map((row) => Math.abs(row[figure]))) };
  },
});
