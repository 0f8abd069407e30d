import { encodeTable, TableBuilder } from '@servegym/environments/table';
import { above, whole, within } from '../arguments/options.ts';
import { defineCommand } from '../command-table.ts';
import { readProfile, requireWritable, writeOutputFile } from '../files.ts';
import { ProgressDisplay } from '../output/progress.ts';

export const buildCommand = () =>
  defineCommand({
    options: {
      profile: { value: '<name|file.json>', required: true, help: 'the engine profile' },
      out: { value: '<file.parquet>', help: 'where to write (default: <profile>.parquet)' },
      memory: above(
        '<GB>',
        0,
        1000,
        'memory of a GPU that the server may use (default: 40, or all of a smaller GPU)',
      ),
      usdPerHour: within('<price>', 0.001, 10_000, "price of a GPU (default: the profile's)"),
      outputTokens: whole('<n>', 8, 4096, 'mean answer of the load', 256),
    },
    after: 'Takes less than a minute. The same profile gives the same file.',
    async action({ profile: name, out, memory: memoryGb, usdPerHour, outputTokens }) {
      const profile = await readProfile(name);
      const file = out ?? `${profile.name}.parquet`;
      await requireWritable(file);
      const builder = new TableBuilder(profile, { memoryGb, usdPerHour, outputTokens });
      const display = new ProgressDisplay();
      const rows = builder.build((done, planned) => {
        if (done % 50 === 0) display.show(`${done} of ${planned} configurations`, done / planned);
      });
      display.end();
      await writeOutputFile(file, [encodeTable(rows, builder.metadata())]);
      console.log(`Wrote ${rows.length} configurations to ${file}.`);
      console.log(`Play it: servegym serve --env inferencegym --table ${file}`);
    },
  });
