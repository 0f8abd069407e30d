// Fits the constants of vLLM V1 (`packages/profiles/src/data/engine-constants.ts`) to served loads: those of
// `--data FOLDER` (docs/reference-data.md), or the 21 that the tests hold. Takes minutes. `--leave-out`: the errors of each
// load under constants fitted to the loads of other models and GPUs.
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { findReferenceFiles, SERVED_LOADS } from '@servegym/operators/fidelity';
import {
  type EngineConstants,
  fitEngineConstants,
  fittedConstants,
  type LoadLatencies,
  leftOutConstants,
  measuredLatencies,
  parseServedLoads,
  type ServedLoad,
  simulateServedLoad,
} from '@servegym/profiles';
import { MEASURED_LOADS } from '../packages/operators/src/fidelity/measured-figures.fixture.ts';

const { values } = parseArgs({
  options: { data: { type: 'string' }, 'leave-out': { type: 'boolean', default: false } },
});
const all = values.data === undefined ? [...MEASURED_LOADS] : await readLoads(values.data);
const constants = fitEngineConstants(all);
console.log(
  Object.fromEntries(
    Object.entries(fittedConstants(constants)).map(([path, value]) => [path, Number(value.toPrecision(3))]),
  ),
);
const each = values['leave-out'] ? leftOutConstants(all, constants) : all.map(() => constants);
const errors = all.map((load, i) => errorsOf(load, each[i]));
console.table(errors);
for (const what of ['ttftMean', 'ttftP99', 'itlMean', 'e2eMean'] as const) {
  const sizes = errors.map((row) => Math.abs(row[what])).sort((a, b) => a - b);
  const median = (sizes[(sizes.length - 1) >> 1] + sizes[sizes.length >> 1]) / 2;
  console.log(`${what}: median ${median.toFixed(1)} %`);
}

async function readLoads(folder: string): Promise<ServedLoad[]> {
  const loads: ServedLoad[] = [];
  for (const file of SERVED_LOADS) {
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
