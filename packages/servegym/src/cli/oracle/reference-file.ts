import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { SERVE_TASKS, type SeedReturns, TASK_IDS, type TaskReference } from '@servegym/environments';

/** All that is recorded, by id of the task. */
export type ReferenceFile = Record<string, TaskReference>;

export function readReferenceFile(url: URL): ReferenceFile {
  return JSON.parse(readFileSync(url, 'utf8')) as ReferenceFile;
}

/** Writes a line for each seed, in order; a reader never sees half a file. */
export function writeReferenceFile(url: URL, file: ReferenceFile): void {
  const tasks = TASK_IDS.filter((id) => file[id] !== undefined).map((id) => {
    const { fingerprint, constant, phases, seeds } = file[id]!;
    const phaseLines = SERVE_TASKS[id].phases
      .filter(({ name }) => phases[name] !== undefined)
      .map(({ name }) => `      ${JSON.stringify(name)}: ${JSON.stringify(phases[name])}`);
    const seedLines = inOrder(seeds).map(
      ([seed, returns]) => `      ${JSON.stringify(seed)}: ${JSON.stringify(returns)}`,
    );
    return [
      `  ${JSON.stringify(id)}: {`,
      `    "fingerprint": ${JSON.stringify(fingerprint)},`,
      `    "constant": ${JSON.stringify(constant)},`,
      `    "phases": {\n${phaseLines.join(',\n')}\n    },`,
      `    "seeds": {\n${seedLines.join(',\n')}\n    }`,
      '  }',
    ].join('\n');
  });
  const beside = new URL(`${url.href}.${process.pid}`);
  writeFileSync(beside, `{\n${tasks.join(',\n')}\n}\n`);
  renameSync(beside, url);
}

function inOrder(seeds: Readonly<Record<string, SeedReturns>>): [string, SeedReturns][] {
  return Object.entries(seeds).sort(([a], [b]) => Number(a) - Number(b));
}
