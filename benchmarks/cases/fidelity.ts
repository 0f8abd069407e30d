import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { LocalJobs } from '@servegym/jobs';
import { findReferenceFiles } from '@servegym/operators/traces';
import { assessFidelity, FIDELITY_FILES, FIDELITY_JOB_KINDS } from '../fidelity/assess-fidelity.ts';
import { assessPoints, parseAnswers } from '../fidelity/assess-points.ts';
import { addContribution, type ContributionErrors, contributedErrors } from '../fidelity/contributed.ts';
import { fidelityReport, pointsChart, pointsReport } from '../fidelity/fidelity-report.ts';
import { benchmark, text } from '../harness.ts';

export default benchmark({
  what: 'How near the simulator comes to measurements of real servers: those of `--data` (docs/reference-data.md), and the operating points of `--tables`, the unpacked package aiconfigurator-core, on profiles from its kernel tables. `--answers` of benchmarks/fidelity/aiconfigurator_answers.py stand beside ours; `--held-out`: the points that are held out, instead of the others; `--only PATTERN`: points whose label (engine, model, GPU, version, campaign, requests in flight) has this pattern, under the shipped constants alone. `add` checks what a load generator measured of a server that this line started on `--gpu NAME`, prints the errors of its shipped profile and adds it to benchmarks/fidelity/contributed; `--source` says who measured. `--output` gets the report, `--results` all figures as JSON.',
  arguments: "[add RESULT 'vllm serve ...']",
  options: {
    ...{ data: text, gpu: text, source: text, tables: text, answers: text, 'held-out': false },
    ...{ only: text, output: text, results: text, threads: availableParallelism() },
  },
  async *run(
    { data, tables, answers, 'held-out': heldOut, only, output, results, threads, gpu, source },
    [verb, file, command],
  ) {
    if (verb !== undefined) {
      if (verb !== 'add' || file === undefined || command === undefined || gpu === undefined)
        throw new Error("expected add RESULT 'vllm serve MODEL ...' --gpu NAME");
      const added = addContribution(await readReferenceFile(file), { gpu, command, source: source ?? file });
      for (const { errors, profile, status, load, requests } of added)
        yield { profile, status, load, requests, ...errorRow(errors) };
      yield 'Written to benchmarks/fidelity/contributed: send it as a pull request. The next `--output` has it in docs/fidelity.md.';
      return;
    }
    if (data === undefined && tables === undefined) throw new Error('expected --data or --tables');
    if (tables === undefined && (answers !== undefined || heldOut))
      throw new Error('--answers and --held-out need --tables');
    if (data !== undefined) findReferenceFiles(data, FIDELITY_FILES);
    const jobs = new LocalJobs({ kinds: FIDELITY_JOB_KINDS, threads });
    try {
      const measured =
        data === undefined
          ? null
          : await assessFidelity(jobs, (file) => readReferenceFile(findReferenceFiles(data, [file])[0]));
      const text = answers === undefined ? undefined : await readReferenceFile(answers);
      const theirs = text === undefined ? undefined : parseAnswers(text);
      const points =
        tables === undefined
          ? null
          : await assessPoints(jobs, { folder: tables, heldOut, only, answers: theirs });
      const report =
        measured === null
          ? pointsReport(points ?? [])
          : fidelityReport(measured, points, contributedErrors(undefined, theirs));
      const figures = { ...measured, ...(points !== null && { points }) };
      if (results !== undefined) await writeFile(results, JSON.stringify(figures));
      if (output === undefined) yield report;
      else await writeFile(output, report);
      if (output !== undefined && points !== null)
        await writeFile(join(dirname(output), 'images', 'fidelity-tpot.svg'), pointsChart(points));
    } finally {
      await jobs.close();
    }
  },
});

function errorRow(errors: ContributionErrors['errors']) {
  return Object.fromEntries(
    (['ttft', 'tpot', 'e2e'] as const).flatMap((what) =>
      (['mean', 'p99'] as const).map((of) => [`${what.toUpperCase()} ${of}, %`, errors[what][of]]),
    ),
  );
}

async function readReferenceFile(path: string): Promise<string> {
  const bytes = await readFile(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}
