import { join } from 'node:path';
import { Command } from 'commander';
import { readInputFile } from '../arguments/read-input-file.ts';
import { addJobOptions, type JobOptions, openStoppableJobs } from '../jobs/open-jobs.ts';
import { showProgress } from '../output/progress-line.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';
import { assessFidelity } from './assess-fidelity.ts';
import type { Fidelity } from './fidelity.ts';
import { fidelityReport } from './fidelity-report.ts';

interface FidelityOptions extends JobOptions {
  readonly data: string;
  readonly output?: string;
  readonly json: boolean;
}

/** `servegym fidelity`: how near the simulator comes to measurements of real servers. */
export function fidelityCommand(): Command {
  const command = new Command('fidelity')
    .description('compare the simulator with measurements of real servers')
    .requiredOption(
      '--data <folder>',
      'measurements: measured/static-batch-latency.csv, measured/vllm-0.15-served-load.json, kernel-profiles/ and vllm-runs/',
    )
    .option('--output <file.md>', 'write the report to this file');
  return addJobOptions(command).option('--json', 'print one JSON object', false).action(fidelity);
}

async function fidelity({ data, output, json, ...where }: FidelityOptions): Promise<void> {
  await requireWritable(output);
  const jobs = await openStoppableJobs(where);
  let results: Fidelity;
  try {
    results = await assessFidelity(
      jobs,
      (path) => readInputFile(join(data, path)),
      (share) => showProgress(`compared ${Math.round(100 * share)} %`),
    );
  } finally {
    showProgress('');
    await jobs.close();
  }
  const report = fidelityReport(results);
  if (output !== undefined) await writeOutputFile(output, [report]);
  if (json) console.log(JSON.stringify(results, null, 2));
  else console.log(output === undefined ? report : `wrote ${output}`);
}
