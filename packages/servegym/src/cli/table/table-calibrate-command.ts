import {
  calibrateTask,
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  GYM_TASK_IDS,
  GYM_TASKS,
  GymWorld,
  inferenceGym,
  shippedWorld,
  type TaskCalibration,
} from '@servegym/environments';
import { Command } from 'commander';
import { readGymOptions } from '../arguments/read-table.ts';
import { writeOutputFile } from '../output/write-output-file.ts';

/** Seed of the fixed baseline agent. */
const BASELINE_SEED = 0;

interface CalibrateOptions {
  readonly out?: string;
  readonly json: boolean;
}

/** `servegym table calibrate`: what the rewards and grades of a table's tasks are measured against. */
export function tableCalibrateCommand(): Command {
  return new Command('calibrate')
    .description(
      'measure the best fixed configuration of each task on a table, and the score of the baseline',
    )
    .argument('[file.parquet]', 'the table (default: the one that comes with the package)')
    .option('--out <file.json>', 'write the calibration')
    .option('--json', 'print one JSON object', false)
    .action(calibrate);
}

async function calibrate(file: string | undefined, { out, json }: CalibrateOptions): Promise<void> {
  const { times } = await ((await readGymOptions(file)).world ?? shippedWorld)();
  // Measured anew, also where the package knows it.
  const calibration = Object.fromEntries(
    GYM_TASK_IDS.map((id) => [id, calibrateTask(times, GYM_TASKS[id])]),
  ) as Record<(typeof GYM_TASK_IDS)[number], TaskCalibration>;
  const world = new GymWorld(times.table, calibration);
  const scores = await baselineScores(world);
  if (out !== undefined) await writeOutputFile(out, [`${JSON.stringify(calibration, null, 2)}\n`]);
  if (json) {
    console.log(JSON.stringify({ calibration, baseline_scores: scores }, null, 2));
    return;
  }
  for (const id of GYM_TASK_IDS) {
    const { bestTokensPerSecond, referenceTokensPerSecond, best } = calibration[id];
    console.log(`task ${id} (${GYM_TASKS[id].name})`);
    console.log(`  best fixed configuration  ${bestTokensPerSecond} tokens/s  ${JSON.stringify(best)}`);
    console.log(`  batch of eight            ${referenceTokensPerSecond} tokens/s`);
    console.log(`  score of the baseline     ${scores[id].toFixed(3)}`);
  }
}

async function baselineScores(world: GymWorld): Promise<Record<string, number>> {
  const environment = inferenceGym({ world: async () => world });
  const scores: Record<string, number> = {};
  for (const id of GYM_TASK_IDS) {
    const actions = Array.from({ length: EPISODE_STEPS }, () => GYM_DEFAULT_ACTION);
    const grade = await environment.grade!({ reset: { task_id: id, seed: BASELINE_SEED }, actions });
    scores[id] = grade.score;
  }
  return scores;
}
