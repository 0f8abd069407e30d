import { type PpoCheckpoint, type PpoStart, trainPpo } from '@servegym/agents';
import { ProgressDisplay } from '../output/progress-display.ts';
import { writeCheckpoint } from './checkpoint-file.ts';
import { finalReturn, learningCurveTitle } from './learning-curve.ts';
import { networkFiles, writeNetwork } from './trained-files.ts';
import { TrainingLog } from './training-log.ts';
import type { NetworkTrainingPlan, TrainingReport } from './training-plan.ts';
import { learnedFigures, progressLine, timedLine } from './training-report.ts';

/** Time between two checkpoints, s. */
const CHECKPOINT_EVERY_S = 20;

/** Trains a network with PPO, and writes its weights, where it stopped, a line of metrics for each update and the curve. */
export async function trainNetwork(
  { learningTask, algorithm, folder, ...plan }: NetworkTrainingPlan,
  start: PpoStart = {},
): Promise<TrainingReport> {
  const firstStep = start.checkpoint?.steps ?? 0;
  const files = networkFiles(folder);
  const keep = (checkpoint: PpoCheckpoint) =>
    writeCheckpoint(files.checkpoint, {
      ...{ learningTask, algorithm, checkpoint, steps: plan.steps, seed: plan.seed },
    });
  const log = new TrainingLog(folder, firstStep);
  const display = new ProgressDisplay();
  const started = performance.now();
  let written = started;
  const { weights, steps, checkpoint } = await trainPpo({
    ...{ ...learningTask, ...plan, start },
    onUpdate(update, checkpoint) {
      const now = performance.now();
      const progress = {
        plannedSteps: plan.steps,
        firstStep,
        wallSeconds: (now - started) / 1000,
      };
      log.append(timedLine(learnedFigures(update), progress));
      display.show(progressLine(update, progress), Math.min(1, update.steps / plan.steps));
      if (now - written < 1000 * CHECKPOINT_EVERY_S) return;
      written = now;
      keep(checkpoint());
    },
  });
  display.end();
  keep(checkpoint);
  writeNetwork(files, { learningTask, algorithm, weights, steps, seed: plan.seed });
  const drawn = log.finish(learningCurveTitle(algorithm, learningTask.taskId, plan.seed));
  return { steps, final_return: finalReturn(log.lines), files: { ...files, ...drawn } };
}
