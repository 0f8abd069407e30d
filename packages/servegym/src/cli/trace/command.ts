import { describeTrace } from '@servegym/simulator';
import { Command } from 'commander';
import {
  addTraceOptions,
  readingLine,
  readTraceArgument,
  type TraceArguments,
} from '../arguments/trace-arguments.ts';
import { printResult } from '../output/print-result.ts';
import { traceDescriptionJson, traceDescriptionText } from './trace-description.ts';

interface DescribeOptions extends TraceArguments {
  readonly json: boolean;
}

/** `servegym trace`: looks at the traces people have. */
export function traceCommand(): Command {
  const describe = addTraceOptions(
    new Command('describe')
      .description('print rates, bursts, lengths and oddities of a trace')
      .argument(
        '<file>',
        'CSV (Azure, BurstGPT, ServeGen, your own), JSON lines (Mooncake), Parquet, or a result of vllm bench serve or GuideLLM; .gz and .zst too',
      ),
  )
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Examples:
  servegym trace describe AzureLLMInferenceTrace_conv.csv
  servegym trace describe log.csv.gz --map arrival=received,input=n_prompt,output=n_completion --time-unit ms`,
    )
    .action(describeFile);
  return new Command('trace').description('look at a trace of requests').addCommand(describe);
}

async function describeFile(file: string, options: DescribeOptions): Promise<void> {
  const read = await readTraceArgument(file, options);
  const description = describeTrace(read.trace);
  const line = readingLine(file, read.reading, read.trace.arrivalMs.length);
  printResult(
    options.json,
    () => traceDescriptionJson(file, read.reading, description),
    () => `${line}\n\n${traceDescriptionText(description)}`,
  );
}
