// `npx node benchmarks/run.ts NAME [options]`: measures one case, and prints its figures as a table, or as JSON with
// `--json`. Without a name it lists the cases.
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { type Case, runCase, usage } from './harness.ts';

// As the command line does, see `packages/servegym/src/main.ts`.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=2000');

const folder = join(import.meta.dirname, 'cases');
const names = globSync('*.ts', { cwd: folder })
  .map((file) => basename(file, '.ts'))
  .sort();
const load = async (name: string): Promise<Case> => (await import(join(folder, `${name}.ts`))).default;

const [name, ...args] = process.argv.slice(2);
if (name !== undefined && names.includes(name)) {
  await runCase(await load(name), args).catch((error: Error) => {
    console.error(`error: ${error.message}`);
    process.exitCode = 1;
  });
} else if (name === undefined || name === '--help') {
  for (const each of names) {
    const { what, options, arguments: positionals } = await load(each);
    console.log(`${each} ${usage(options, positionals)}\n    ${what.replaceAll('\n', '\n    ')}\n`);
  }
} else {
  console.error(`error: expected one of ${names.join(', ')}, got ${name}`);
  process.exitCode = 2;
}
