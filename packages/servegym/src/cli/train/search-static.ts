import { writeFileSync } from 'node:fs';
import { encodeServeConstant, type TunedConstant, tuneConstant } from '@servegym/agents';
import { findServeTask } from '@servegym/environments';
import { searchedFiles } from './trained-files.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

/** Searches the best configuration that never changes, and writes it. */
export async function searchStatic({ task, seed, folder, signal }: TrainingPlan): Promise<TrainingReport> {
  const found = await tuneConstant({
    ...{ taskId: task, seed, signal },
    onProgress(found) {
      console.error(
        `${found.episodes} episodes  return ${found.meanReturn.toFixed(2)}  ${JSON.stringify(found.action)}`,
      );
    },
  });
  const { policy, ...report } = constantReport(task, seed, found);
  const files = searchedFiles(folder);
  writeFileSync(files.policy, policy);
  return { ...report, files };
}

/** What came of the search, and the file of the configuration. */
export function constantReport(
  taskId: string,
  seed: number,
  { action, meanReturn, episodes }: TunedConstant,
): Pick<TrainingReport, 'steps' | 'final_return'> & { readonly policy: string } {
  const training = { algorithm: 'static', episodes, mean_return: meanReturn, seed };
  return {
    steps: episodes * findServeTask(taskId)!.windows,
    final_return: meanReturn,
    policy: encodeServeConstant({ taskId, action, training }),
  };
}
