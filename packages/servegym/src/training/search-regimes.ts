import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeRegimeTable, searchRegimes as search } from '@servegym/agents';
import type { Json } from '@servegym/agents/jobs';
import { openJobs } from '../jobs/open-jobs.ts';
import { TrainingLog } from './training-log.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

/** Searches a configuration for each regime of traffic, and writes them. */
export async function searchRegimes(plan: TrainingPlan): Promise<TrainingReport> {
  const { task: taskId, steps, seed, threads, queue, folder, signal } = plan;
  const log = new TrainingLog(folder);
  const jobs = await openJobs({ threads, queue });
  const started = performance.now();
  try {
    const table = await search({
      ...{ taskId, steps, seed, signal },
      async play(trials) {
        const returns = await jobs.run(
          trials.map((trial) => ({ kind: 'play-regimes', input: trial as unknown as Json })),
        );
        return returns as number[];
      },
      onGeneration({ steps: played, meanReturn, eliteReturn }) {
        const wall_s = (performance.now() - started) / 1000;
        const steps_per_s = played / wall_s;
        log.append({
          steps: played,
          mean_return: meanReturn,
          elite_return: eliteReturn,
          wall_s,
          steps_per_s,
        });
        console.error(
          `${played.toLocaleString('en-US')} windows  ${Math.round(steps_per_s)}/s  return ${meanReturn.toFixed(1)}, of the best ${eliteReturn.toFixed(1)}`,
        );
      },
    });
    const policy = join(folder, 'policy.json');
    writeFileSync(policy, encodeRegimeTable(table));
    const drawn = log.finish(`Cross-entropy search on ${taskId}, seed ${seed}`);
    return { steps: table.steps, final_return: log.finalReturn, files: { policy, ...drawn } };
  } finally {
    await jobs.close();
  }
}
