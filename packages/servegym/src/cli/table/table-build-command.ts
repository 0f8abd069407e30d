import { encodeTable, TableBuilder } from '@servegym/environments/table';
import { Command, Option } from 'commander';
import { numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { readProfile } from '../arguments/read-input-file.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface BuildOptions {
  readonly profile: string;
  readonly out?: string;
  readonly memory?: number;
  readonly usdPerHour?: number;
  readonly outputTokens: number;
}

/** `servegym table build`: measures a profile's table on the simulator. */
export function tableBuildCommand(): Command {
  return new Command('build')
    .description('measure an engine profile on the simulator and write its trace table')
    .requiredOption('--profile <name|file.json>', 'the engine profile; `servegym profiles` lists them')
    .option('--out <file.parquet>', 'where to write (default: <profile>.parquet)')
    .addOption(
      new Option(
        '--memory <GB>',
        'memory of a GPU that the server may use (default: 40, or all of a smaller GPU)',
      ).argParser(numberAbove(0, 1000)),
    )
    .addOption(
      new Option('--usd-per-hour <price>', "price of a GPU (default: the profile's)").argParser(
        numberFrom(0.001, 10_000),
      ),
    )
    .addOption(
      new Option('--output-tokens <n>', 'mean answer of the load')
        .default(256)
        .argParser(wholeNumber(8, 4096)),
    )
    .addHelpText('after', '\nTakes less than a minute. The same profile gives the same file.')
    .action(build);
}

async function build({ profile, out, memory, usdPerHour, outputTokens }: BuildOptions): Promise<void> {
  const engine = await readProfile(profile);
  const file = out ?? `${engine.name}.parquet`;
  await requireWritable(file);
  const builder = new TableBuilder(engine, { memoryGb: memory, usdPerHour, outputTokens });
  const display = new ProgressDisplay();
  const rows = builder.build((done, planned) => {
    if (done % 50 === 0) display.show(`${done} of ${planned} configurations`, done / planned);
  });
  display.end();
  await writeOutputFile(file, [encodeTable(rows, builder.metadata())]);
  console.log(`Wrote ${rows.length} configurations to ${file}.`);
  console.log(`Play it: servegym serve --env inferencegym --table ${file}`);
}
