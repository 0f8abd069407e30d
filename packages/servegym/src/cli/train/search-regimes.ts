import { writeFileSync } from 'node:fs';
import { encodeRegimeTable, searchRegimes as search } from '@servegym/agents';
import type { Json } from '@servegym/jobs';
import { shareTask } from '../jobs/job-task.ts';
import { openJobs } from '../jobs/open-jobs.ts';
import { finalReturn, learningCurveTitle } from './learning-curve.ts';
import type { PlayRegimesInput } from './play-regimes-job.ts';
import { searchedFiles } from './trained-files.ts';
import { TrainingLog } from './training-log.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';
import { generationFigures, timedLine } from './training-report.ts';

/** Searches a configuration for each regime of traffic, and writes them. */
export async function searchRegimes(plan: TrainingPlan): Promise<TrainingReport> {
  const { task: taskId, steps, seed, threads, queue, folder, signal } = plan;
  const log = new TrainingLog(folder);
  const jobs = await openJobs({ threads, queue });
  const started = performance.now();
  try {
    const ownTask = await shareTask(jobs, taskId);
    const shared = ownTask === undefined ? [] : [ownTask];
    const table = await search({
      ...{ taskId, steps, seed, signal },
      async play(trials) {
        const returns = await jobs.run(
          trials.map((trial) => {
            const input: PlayRegimesInput = { ...trial, ...(ownTask !== undefined && { ownTask }) };
            return { kind: 'play-regimes', input: input as unknown as Json, shared };
          }),
        );
        return returns as number[];
      },
      onGeneration(generation) {
        const { steps: played, meanReturn, eliteReturn } = generation;
        const wallSeconds = (performance.now() - started) / 1000;
        log.append(timedLine(generationFigures(generation), { firstStep: 0, wallSeconds }));
        console.error(
          `${played.toLocaleString('en-US')} windows  ${Math.round(played / wallSeconds)}/s  return ${meanReturn.toFixed(1)}, of the best ${eliteReturn.toFixed(1)}`,
        );
      },
    });
    const files = searchedFiles(folder);
    writeFileSync(files.policy, encodeRegimeTable(table));
    const drawn = log.finish(learningCurveTitle('cem', taskId, seed));
    return { steps: table.steps, final_return: finalReturn(log.lines), files: { ...files, ...drawn } };
  } finally {
    await jobs.close();
  }
}
