import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeServeActor, type PpoUpdate, trainServePpo } from '@servegym/agents';
import { learningCurveSvg } from '../reports/learning-curve.ts';
import { progressLine, updateJson } from '../reports/training-report.ts';
import { ProgressDisplay } from './progress-display.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

/** Trains a network, and writes its weights, a line of metrics for each update and the learning curve. */
export async function trainPpo({ task, folder, ...plan }: TrainingPlan): Promise<TrainingReport> {
  const files = {
    policy: join(folder, 'policy.safetensors'),
    metrics: join(folder, 'metrics.jsonl'),
    curve: join(folder, 'learning-curve.svg'),
  };
  writeFileSync(files.metrics, '');
  const display = new ProgressDisplay();
  const started = performance.now();
  const updates: PpoUpdate[] = [];
  const actor = await trainServePpo({
    ...plan,
    taskId: task,
    onUpdate(update) {
      updates.push(update);
      const progress = { plannedSteps: plan.steps, wallSeconds: (performance.now() - started) / 1000 };
      appendFileSync(files.metrics, `${JSON.stringify(updateJson(update, progress))}\n`);
      display.show(progressLine(update, progress), Math.min(1, update.steps / plan.steps));
    },
  });
  display.end();

  const curve = updates.flatMap(({ steps, meanReturn }) =>
    meanReturn === null ? [] : [{ steps, value: meanReturn }],
  );
  writeFileSync(files.policy, encodeServeActor(actor));
  writeFileSync(files.curve, learningCurveSvg(`PPO on ${task}, seed ${plan.seed}`, curve));
  return { steps: updates.at(-1)!.steps, final_return: curve.at(-1)?.value ?? null, files };
}
