import { gunzipSync } from 'node:zlib';
import {
  assessFidelity,
  assessLeague,
  FIDELITY_FILES,
  fidelityReport,
  findReferenceFiles,
  leagueReport,
} from '@servegym/operators/fidelity';
import { Command } from 'commander';
import { readInputBytes } from '../arguments/read-input-file.ts';
import { InputError } from '../input-error.ts';
import { addJobOptions, type JobOptions, withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface FidelityOptions extends JobOptions {
  readonly data?: string;
  readonly tables?: string;
  readonly answers?: string;
  readonly heldOut: boolean;
  readonly output?: string;
  readonly json: boolean;
}

/** `servegym fidelity`: how near the simulator comes to measurements of real servers. */
export function fidelityCommand(): Command {
  const command = new Command('fidelity')
    .description('compare the simulator with measurements of real servers')
    .option('--data <folder>', 'public measurements, as docs/reference-data.md describes them')
    .option(
      '--tables <folder>',
      'the unpacked package aiconfigurator-core: its operating points, from its kernel tables',
    )
    .option(
      '--answers <file.jsonl>',
      'answers of benchmarks/league/aiconfigurator_answers.py, to stand beside ours',
    )
    .option('--held-out', 'of --tables: the operating points that are held out, instead of the others', false)
    .option('--output <file.md>', 'write the report to this file');
  return addJobOptions(command).option('--json', 'print one JSON object', false).action(fidelity);
}

async function fidelity(options: FidelityOptions): Promise<void> {
  const { data, tables, answers, heldOut, output, json, ...where } = options;
  if (data === undefined && tables === undefined) throw new InputError('fidelity needs --data or --tables');
  if (tables === undefined && (answers !== undefined || heldOut))
    throw new InputError('--answers and --held-out need --tables');
  await requireWritable(output);
  if (data !== undefined) findReferenceFiles(data, FIDELITY_FILES);
  const onProgress = (share: number) => showProgress(`compared ${Math.round(100 * share)} %`);
  const results = await withJobs(where, async (jobs) => ({
    measured:
      data === undefined
        ? null
        : await assessFidelity(
            jobs,
            (file) => readReferenceFile(findReferenceFiles(data, [file])[0]),
            onProgress,
          ),
    league:
      tables === undefined
        ? null
        : await assessLeague(jobs, {
            ...{ folder: tables, heldOut, onProgress },
            ...(answers !== undefined && { answers: await readReferenceFile(answers) }),
          }),
  })).finally(() => showProgress(''));
  const { measured, league } = results;
  const report = measured === null ? leagueReport(league ?? []) : fidelityReport(measured, league);
  if (output !== undefined) await writeOutputFile(output, [report]);
  printResult(
    json,
    () => ({ ...measured, ...(league !== null && { league }) }),
    () => (output === undefined ? report : `wrote ${output}`),
  );
}

/** Text of a file, which may be packed. */
async function readReferenceFile(path: string): Promise<string> {
  const bytes = await readInputBytes(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}
