import { readFile } from 'node:fs/promises';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import type { EngineConstants } from '../../packages/profiles/src/data/engine-constants.ts';
import {
  fitEngineConstants,
  fittedConstants,
  leftOutConstants,
} from '../../packages/profiles/src/fits/fit-engine-constants.ts';
import {
  type LoadLatencies,
  measuredLatencies,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
} from '../../packages/profiles/src/fits/served-load.ts';
import { MEASURED_LOADS } from '../fidelity/measured-figures.fixture.ts';
import { benchmark, median, text } from '../harness.ts';

export default benchmark({
  what: 'Fits the constants of vLLM V1 (`packages/profiles/src/data/engine-constants.ts`) to served loads: those of `--data FOLDER` (docs/reference-data.md), or the 21 that the tests hold. Takes minutes. `--leave-out`: the errors of each load under constants fitted to the loads of other models and GPUs.',
  options: { data: text, 'leave-out': false },
  async *run({ data, 'leave-out': leaveOut }) {
    const all = data === undefined ? [...MEASURED_LOADS] : await readLoads(data);
    const constants = fitEngineConstants(all);
    for (const [constant, value] of Object.entries(fittedConstants(constants))) yield { constant, value };
    const each = leaveOut ? leftOutConstants(all, constants) : all.map(() => constants);
    const errors = all.map((load, i) => errorsOf(load, each[i]));
    for (const row of errors) yield { ...row };
    for (const figure of ['ttftMean', 'ttftP99', 'itlMean', 'e2eMean'] as const)
      yield { figure, 'median error, %': median(errors.map((row) => Math.abs(row[figure]))) };
  },
});

async function readLoads(folder: string): Promise<ServedLoad[]> {
  const loads: ServedLoad[] = [];
  for (const file of REFERENCE_DATA.servedLoads) {
    const text = await readFile(findReferenceFiles(folder, [file])[0], 'utf8');
    loads.push(...parseServedLoads(text, file.path));
  }
  return loads;
}

/** Relative errors, percent. */
function errorsOf(
  load: ServedLoad,
  of: EngineConstants,
): LoadLatencies & { run: string; model: string; gpu: string } {
  const simulated = simulateServedLoad(load, of);
  const measured = measuredLatencies(load);
  const percent = (what: keyof LoadLatencies) =>
    Number((100 * (simulated[what] / measured[what] - 1)).toFixed(1));
  return {
    run: load.run,
    model: load.model.replace(/^.*\//, ''),
    gpu: `${load.tp} x ${load.gpu}`,
    ttftMean: percent('ttftMean'),
    ttftP99: percent('ttftP99'),
    itlMean: percent('itlMean'),
    e2eMean: percent('e2eMean'),
  };
}
