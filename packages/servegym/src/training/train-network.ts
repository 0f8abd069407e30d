import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeOnnxActor, type PpoCheckpoint, trainPpo as train } from '@servegym/agents';
import { progressLine, updateJson } from '../reports/training-report.ts';
import { writeCheckpoint } from './checkpoint-file.ts';
import { ProgressDisplay } from './progress-display.ts';
import { TrainingLog } from './training-log.ts';
import type { NetworkTrainingPlan, TrainingReport } from './training-plan.ts';

/** Time between two checkpoints, s. */
const CHECKPOINT_EVERY_S = 20;

/** Trains a network, and writes its weights, where it stopped, a line of metrics for each update and the curve. */
export async function trainPpo(
  { learningTask, folder, ...plan }: NetworkTrainingPlan,
  from?: PpoCheckpoint,
): Promise<TrainingReport> {
  const files = {
    policy: join(folder, 'policy.safetensors'),
    onnx: join(folder, 'policy.onnx'),
    checkpoint: join(folder, 'checkpoint.safetensors'),
  };
  const keep = (checkpoint: PpoCheckpoint) =>
    writeCheckpoint(files.checkpoint, { learningTask, steps: plan.steps, seed: plan.seed, checkpoint });
  const log = new TrainingLog(folder, from?.steps);
  const display = new ProgressDisplay();
  const started = performance.now();
  let written = started;
  const { weights, steps, checkpoint } = await train({
    ...{ ...learningTask, ...plan },
    ...(from && { start: { checkpoint: from } }),
    onUpdate(update, checkpoint) {
      const now = performance.now();
      const progress = {
        plannedSteps: plan.steps,
        firstStep: from?.steps ?? 0,
        wallSeconds: (now - started) / 1000,
      };
      log.append(updateJson(update, progress));
      display.show(progressLine(update, progress), Math.min(1, update.steps / plan.steps));
      if (now - written < 1000 * CHECKPOINT_EVERY_S) return;
      written = now;
      keep(checkpoint());
    },
  });
  display.end();
  keep(checkpoint);
  writeFileSync(
    files.policy,
    learningTask.encodeActor(weights, { algorithm: 'ppo', steps, seed: plan.seed }),
  );
  writeFileSync(files.onnx, encodeOnnxActor(weights, learningTask.metadata));
  const drawn = log.finish(`PPO on ${learningTask.taskId}, seed ${plan.seed}`);
  return { steps, final_return: log.finalReturn, files: { ...files, ...drawn } };
}
