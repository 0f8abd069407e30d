import {
  blocksOf,
  compareDeployments,
  type Deployment,
  diffResult,
  type SloTerm,
  withTooLong,
} from '@servegym/operators';
import { scaleRate, takeRequests } from '@servegym/simulator';
import { Command } from 'commander';
import { readDeployment } from '../arguments/deployment.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { addPriceOptions, type PriceOptions, withPrices } from '../arguments/price-options.ts';
import { refuseClassBounds, sloOption } from '../arguments/slo-option.ts';
import {
  addTraceOptions,
  readingLine,
  readTraceArgument,
  type TraceArguments,
} from '../arguments/trace-arguments.ts';
import { printResult } from '../output/print-result.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface DiffOptions extends TraceArguments, PriceOptions {
  readonly baseline: string;
  readonly candidate: string;
  readonly trace: string;
  readonly slo: SloTerm[];
  readonly gpu?: string;
  readonly profile?: string;
  readonly rateScale: number;
  readonly requests: number;
  readonly seed: number;
  readonly markdown?: string;
  readonly json: boolean;
}

/** `servegym diff`: whether a change of settings breaks an SLO. */
export function diffCommand(): Command {
  const command = new Command('diff')
    .description('compare two ways to serve a trace, and say whether the second breaks an SLO')
    .requiredOption(
      '--baseline <file|line>',
      'how it is served now: a `vllm serve` or SGLang line, or a file with one, a Kubernetes manifest, Helm values, or JSON of `plan`',
    )
    .requiredOption('--candidate <file|line>', 'the same after the change')
    .requiredOption(
      '--trace <file>',
      'your traffic: CSV, JSON lines, Parquet or a result of a load generator',
    )
    .addOption(sloOption('ttft_p99=1s,tpot_p99=50ms'))
    .option('--gpu <name>', 'the GPU that both are on, a part of its name, for instance h100')
    .option(
      '--profile <name|file.json>',
      'the engine profile of both, instead of one for the model and --gpu',
    )
    .option('--rate-scale <factor>', 'at this many times the traffic', numberAbove(0), 1)
    .option(
      '--requests <n>',
      'most requests of the trace, from its start',
      wholeNumber(200, 1_000_000),
      20_000,
    )
    .option('--seed <n>', 'seed of draft tokens and of the bootstrap', wholeNumber(0, 2 ** 31), 0)
    .option('--markdown <file.md>', 'write the table as Markdown, for a comment on a pull request')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Exit status: 0 no bound of the SLO breaks; 1 the candidate breaks one, or makes a broken one worse; 2 too close to tell, or
the input is wrong.

Examples:
  servegym diff --baseline 'vllm serve Qwen/Qwen3-32B -tp 2' --candidate 'vllm serve Qwen/Qwen3-32B -tp 2 --max-num-seqs 512' --gpu h100 --trace log.csv
  servegym diff --baseline main/deployment.yaml --candidate deployment.yaml --gpu h100 --trace log.parquet --slo ttft_p99=500ms`,
    )
    .action(diff);
  return addTraceOptions(addPriceOptions(command));
}

async function diff(options: DiffOptions): Promise<void> {
  const { json, markdown, slo, seed } = options;
  refuseClassBounds(slo, 'a trace has');
  await requireWritable(markdown);
  const baseline = await priced('baseline', options.baseline, options);
  const candidate = await priced('candidate', options.candidate, options);
  const { trace, reading } = await readTraceArgument(options.trace, options);
  if (!json) console.error(readingLine(options.trace, reading, trace.arrivalMs.length));
  const taken = scaleRate(takeRequests(trace, options.requests), options.rateScale);
  const [before, after] = [baseline, candidate].map((each) => withTooLong(each, taken));
  const result = compareDeployments(before, after, blocksOf(taken), slo, seed);
  printResult(
    json,
    () => diffResult.json(result),
    () => diffResult.text(result),
  );
  if (markdown !== undefined) await writeOutputFile(markdown, [`${diffResult.markdown(result)}\n`]);
  process.exitCode = diffResult.status(result);
}

/** A deployment on GPUs at the prices of today. */
async function priced(name: string, text: string, options: DiffOptions): Promise<Deployment> {
  const found = await readDeployment(text, { ...options, name });
  const isShipped = options.profile?.endsWith('.json') !== true;
  const { profiles } = await withPrices([{ profile: found.profile, isShipped }], options);
  return { ...found, profile: profiles[0] };
}
