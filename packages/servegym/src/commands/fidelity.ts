import { join } from 'node:path';
import { Command } from 'commander';
import { assessFidelity } from '../fidelity/assess-fidelity.ts';
import { readInputFile } from '../read-input-file.ts';
import { fidelityReport } from '../reports/fidelity-report.ts';
import { writeOutputFile } from '../write-output-file.ts';

interface FidelityOptions {
  readonly data: string;
  readonly output?: string;
  readonly json: boolean;
}

/** `servegym fidelity`: how near the simulator comes to measurements of real servers. */
export function fidelityCommand(): Command {
  return new Command('fidelity')
    .description('compare the simulator with measurements of real servers')
    .requiredOption(
      '--data <folder>',
      'measurements: measured/static-batch-latency.csv, measured/vllm-0.15-served-load.json, kernel-profiles/ and vllm-runs/',
    )
    .option('--output <file.md>', 'write the report to this file')
    .option('--json', 'print one JSON object', false)
    .action(fidelity);
}

async function fidelity({ data, output, json }: FidelityOptions): Promise<void> {
  const results = await assessFidelity((path) => readInputFile(join(data, path)));
  const report = fidelityReport(results);
  if (output !== undefined) await writeOutputFile(output, [report]);
  if (json) console.log(JSON.stringify(results, null, 2));
  else console.log(output === undefined ? report : `wrote ${output}`);
}
