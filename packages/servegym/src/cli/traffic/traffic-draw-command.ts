import { drawWorkload, findWorkload, WORKLOAD_IDS, type WorkloadId } from '@servegym/environments';
import { Argument, Command } from 'commander';
import { numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface DrawOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly rateScale: number;
  readonly output: string;
}

const MOST_SECONDS = 86_400;

/** `servegym traffic draw`: a trace drawn from a fitted workload. */
export function drawTrafficCommand(): Command {
  return new Command('draw')
    .description('draw a trace from a model, as CSV with the columns of the Azure traces')
    .addArgument(new Argument('<id>', 'the model').choices(WORKLOAD_IDS))
    .requiredOption('--output <file.csv>', 'write the trace to this file')
    .option('--seconds <s>', 'length of the trace', numberAbove(0, MOST_SECONDS), 3600)
    .option('--seed <n>', 'the same seed draws the same trace', wholeNumber(0, 2 ** 31), 0)
    .option('--rate-scale <x>', 'arrivals come this many times as fast', numberFrom(0.01, 20), 1)
    .addHelpText('after', '\nPrompts share nothing, whatever the model says of prefixes.')
    .action(draw);
}

async function draw(id: WorkloadId, { seconds, seed, rateScale, output }: DrawOptions): Promise<void> {
  await requireWritable(output);
  const { arrivalSeconds, inputTokens, outputTokens } = drawWorkload(findWorkload(id)!, seed, seconds, {
    rateScale,
  });
  await writeOutputFile(output, [
    'TIMESTAMP,ContextTokens,GeneratedTokens\n',
    ...arrivalSeconds.map((at, i) => `${timestamp(at)},${inputTokens[i]},${outputTokens[i]}\n`),
  ]);
  console.log(`wrote ${arrivalSeconds.length} requests over ${seconds} s to ${output}`);
}

/** Date and time of the Azure traces; a drawn trace begins at the start of 2024. */
function timestamp(seconds: number): string {
  const date = new Date(Date.UTC(2024, 0, 1) + Math.floor(seconds) * 1000);
  const ticks = Math.floor((seconds % 1) * 1e7);
  return `${date.toISOString().slice(0, 19).replace('T', ' ')}.${String(ticks).padStart(7, '0')}`;
}
