// Measures how many deliberate faults the tests find: puts the faults of `faults.ts` one at a time into the source as it
// is loaded, and runs the tests that should notice. Nothing on disk changes. Prints each survivor and the score by area.
//
//   node maintenance/mutation/mutate.ts [--area ppo] [--jobs 2]
//
// Fails when a test fails without a fault, or when the text that a fault replaces is not found once in its file.
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { AREAS, type FaultyFile } from './faults.ts';
import { type Fault, faultySource } from './faulty-source.ts';
import { runWithFault } from './run-with-fault.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** Time limit of a test file without a fault, s. */
const LIMIT_S = 240;
/** With a fault, a test file may take this many times as long as without, and `GRACE_S` more. */
const SLOWEST_RATIO = 4;
const GRACE_S = 20;

interface Planned extends Fault {
  readonly area: string;
  readonly file: FaultyFile;
}

const { values } = parseArgs({
  options: { area: { type: 'string', multiple: true }, jobs: { type: 'string', default: '1' } },
});
const jobs = Number(values.jobs);
if (!(Number.isInteger(jobs) && jobs > 0))
  throw new Error(`Expected --jobs of 1 or more, got ${values.jobs}`);
const areas = values.area ?? Object.keys(AREAS);
const planned = areas.flatMap((area): Planned[] => {
  const files = (AREAS as Record<string, readonly FaultyFile[]>)[area];
  if (files === undefined)
    throw new Error(`Expected --area of ${Object.keys(AREAS).join(', ')}, got ${area}`);
  return files.flatMap((file) => file.faults.map(([search, replace]) => ({ area, file, search, replace })));
});

for (const fault of planned) requireFitting(fault);
const secondsOf = await timeTests([...new Set(planned.flatMap(({ file }) => file.tests))]);

const survivors: Planned[] = [];
let hung = 0;
let done = 0;
await inParallel(planned, async (fault) => {
  const end = await outcomeOf(fault);
  done += 1;
  if (end === 'hung') hung += 1;
  if (end === 'passed') {
    survivors.push(fault);
    console.log(`survived (${done}/${planned.length})  ${fault.file.path}: ${told(fault)}`);
  }
});

console.log();
for (const area of areas) tellScore(area, (fault) => fault.area === area);
tellScore('all', () => true);
if (hung > 0) console.log(`${hung} of the killed were found by the time limit.`);

/** Tests run until one finds the fault. */
async function outcomeOf({ file, search, replace }: Planned) {
  for (const test of file.tests) {
    const limitS = SLOWEST_RATIO * secondsOf.get(test)! + GRACE_S;
    const path = resolve(ROOT, file.path);
    const outcome = await runWithFault(resolve(ROOT, test), limitS, { path, search, replace });
    if (outcome !== 'passed') return outcome;
  }
  return 'passed';
}

/** Seconds that each test file takes without a fault. @throws Error when one fails */
async function timeTests(tests: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const seconds = new Map<string, number>();
  await inParallel(tests, async (test) => {
    const startedAt = performance.now();
    const outcome = await runWithFault(resolve(ROOT, test), LIMIT_S);
    if (outcome !== 'passed') throw new Error(`Expected ${test} to pass without a fault, it ${outcome}`);
    seconds.set(test, (performance.now() - startedAt) / 1000);
  });
  return seconds;
}

function requireFitting(fault: Planned): void {
  const { path } = fault.file;
  try {
    // Any test would find a text that is no TypeScript.
    stripTypeScriptTypes(faultySource(readFileSync(resolve(ROOT, path), 'utf8'), fault));
  } catch (error) {
    throw new Error(
      `${path}: ${(error as Error).message}. Correct the fault in maintenance/mutation/faults.ts.`,
    );
  }
}

async function inParallel<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const work = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: jobs }, work));
}

function told({ search, replace }: Fault): string {
  const line = (text: string) => text.replace(/\s+/g, ' ').trim();
  return `${line(search)}  =>  ${line(replace) || '(removed)'}`;
}

function tellScore(name: string, isIn: (fault: Planned) => boolean): void {
  const total = planned.filter(isIn).length;
  const killed = total - survivors.filter(isIn).length;
  console.log(`${name.padEnd(10)} ${killed} of ${total} killed, ${((100 * killed) / total).toFixed(1)} %`);
}
