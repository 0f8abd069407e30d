import { type GymTask, GymWorld, inferencegym, type TaskCalibration } from '@servegym/environments';
import { encodeTable, TableBuilder } from '@servegym/environments/table';
import { above, whole, within } from '../arguments/options.ts';
import { readTable } from '../arguments/scenario-options.ts';
import { defineCommand } from '../command-table.ts';
import { readProfile, requireWritable, writeJsonFile, writeOutputFile } from '../files.ts';
import { printResult } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';

/** `servegym profile table build`: measures a profile's table on the simulator. */
export const buildCommand = () =>
  defineCommand({
    description: 'measure an engine profile on the simulator and write its trace table',
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

/** Seed of the fixed baseline agent. */
const BASELINE_SEED = 0;

/** `servegym profile table calibrate`: what the rewards and grades of a table's tasks are measured against. */
export const calibrateCommand = () =>
  defineCommand({
    description:
      'measure the best fixed configuration of each task on a table, and the score of the baseline',
    words: {
      file: { value: '[file.parquet]', help: 'the table (default: the one that comes with the package)' },
    },
    options: {
      out: { value: '<file.json>', help: 'write the calibration' },
      json: { help: 'print one JSON object' },
    },
    async action({ file, out, json }) {
      const { tasks } = inferencegym;
      const { times } = (await readTable(file)).table?.world ?? (await inferencegym.shippedWorld());
      // Measured anew, also where the package knows it.
      const calibration = Object.fromEntries(
        tasks.shippedIds.map((id) => [id, inferencegym.calibrate(times, tasks.shipped[id])]),
      ) as Record<GymTask['id'], TaskCalibration>;
      const scores = await baselineScores(new GymWorld(times.table, calibration));
      if (out !== undefined) await writeJsonFile(out, calibration);
      const text = tasks.shippedIds.map((id) => calibrationText(id, calibration[id], scores[id]));
      printResult(json, { calibration, baseline_scores: scores }, { text: () => text.join('\n') });
    },
  });

function calibrationText(
  id: GymTask['id'],
  { bestTokensPerSecond, referenceTokensPerSecond, best }: TaskCalibration,
  score: number,
): string {
  return [
    `task ${id} (${inferencegym.tasks.shipped[id].name})`,
    `  best fixed configuration  ${bestTokensPerSecond} tokens/s  ${JSON.stringify(best)}`,
    `  batch of eight            ${referenceTokensPerSecond} tokens/s`,
    `  score of the baseline     ${score.toFixed(3)}`,
  ].join('\n');
}

async function baselineScores(world: GymWorld): Promise<Record<string, number>> {
  const environment = inferencegym.definition({ table: { world } });
  const scores: Record<string, number> = {};
  for (const id of inferencegym.tasks.shippedIds) {
    const actions = Array.from({ length: inferencegym.episodeSteps }, () => inferencegym.defaultAction);
    const grade = await environment.grade!({ reset: { task_id: id, seed: BASELINE_SEED }, actions });
    scores[id] = grade.score;
  }
  return scores;
}
