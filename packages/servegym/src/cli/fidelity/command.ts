import { gunzipSync } from 'node:zlib';
import {
  assessFidelity,
  FIDELITY_FILES,
  fidelityReport,
  findReferenceFiles,
} from '@servegym/tuning/fidelity';
import { Command } from 'commander';
import { readInputBytes } from '../arguments/read-input-file.ts';
import { addJobOptions, type JobOptions, withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface FidelityOptions extends JobOptions {
  readonly data: string;
  readonly output?: string;
  readonly json: boolean;
}

/** `servegym fidelity`: how near the simulator comes to measurements of real servers. */
export function fidelityCommand(): Command {
  const command = new Command('fidelity')
    .description('compare the simulator with measurements of real servers')
    .requiredOption('--data <folder>', 'public measurements, as docs/reference-data.md describes them')
    .option('--output <file.md>', 'write the report to this file');
  return addJobOptions(command).option('--json', 'print one JSON object', false).action(fidelity);
}

async function fidelity({ data, output, json, ...where }: FidelityOptions): Promise<void> {
  await requireWritable(output);
  findReferenceFiles(data, FIDELITY_FILES);
  const results = await withJobs(where, (jobs) =>
    assessFidelity(
      jobs,
      (file) => readReferenceFile(findReferenceFiles(data, [file])[0]),
      (share) => showProgress(`compared ${Math.round(100 * share)} %`),
    ),
  ).finally(() => showProgress(''));
  const report = fidelityReport(results);
  if (output !== undefined) await writeOutputFile(output, [report]);
  printResult(
    json,
    () => results,
    () => (output === undefined ? report : `wrote ${output}`),
  );
}

/** Text of a file, which may be packed. */
async function readReferenceFile(path: string): Promise<string> {
  const bytes = await readInputBytes(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}
