import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeServeConstant, tuneConstant } from '@servegym/agents';
import { SERVE_TASKS } from '@servegym/environments';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

/** Searches the best configuration that never changes, and writes it. */
export async function searchStatic({ task, seed, folder, signal }: TrainingPlan): Promise<TrainingReport> {
  const { action, meanReturn, episodes } = await tuneConstant({
    ...{ taskId: task, seed, signal },
    onProgress(found) {
      console.error(
        `${found.episodes} episodes  return ${found.meanReturn.toFixed(2)}  ${JSON.stringify(found.action)}`,
      );
    },
  });
  const policy = join(folder, 'policy.json');
  const training = { algorithm: 'static', episodes, mean_return: meanReturn, seed };
  writeFileSync(policy, encodeServeConstant({ taskId: task, action, training }));
  return { steps: episodes * SERVE_TASKS[task].windows, final_return: meanReturn, files: { policy } };
}
