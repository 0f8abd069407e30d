import { type SchedulingPolicy, WEIGHT_PRECISIONS, type WeightPrecision } from '@servegym/simulator';
import { type Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { numberAbove, wholeNumber } from './options.ts';
import { addSchedulerOptions, type SchedulerOptions } from './scheduler-options.ts';

/** Settings of an engine, in the commands that run one. */
export interface EngineOptions extends SchedulerOptions {
  readonly weights: WeightPrecision;
  /** Sequences at once. */
  readonly maxNumSeqs: number;
  /** Requests that run at once, at most `maxNumSeqs`. */
  readonly maxNumActiveSeqs?: number;
  /** Token budget of an iteration. */
  readonly maxNumBatchedTokens: number;
  /** Share of the free memory that the KV pool takes, above 0 to 1. */
  readonly kvBudgetFraction: number;
  /** Draft tokens a decode step; 0 is off. */
  readonly speculationDepth: number;
  readonly policy: SchedulingPolicy;
}

/** Adds the options, with the defaults of vLLM. */
export function addEngineOptions(command: Command): Command {
  return addSchedulerOptions(command)
    .addOption(
      new Option('--weights <precision>', 'precision of the weights')
        .choices(WEIGHT_PRECISIONS)
        .default('FP16'),
    )
    .option('--max-num-seqs <n>', 'sequences at once', wholeNumber(1, 1_000_000), 256)
    .addOption(
      new Option(
        '--max-num-active-seqs <n>',
        'requests that run at once, where fewer than --max-num-seqs',
      ).argParser(wholeNumber(1, 1_000_000)),
    )
    .option('--max-num-batched-tokens <n>', 'token budget of an iteration', wholeNumber(1, 1_000_000), 2048)
    .addOption(
      new Option('--kv-budget-fraction <share>', 'share of the free memory that the KV pool takes')
        .default(1)
        .argParser(numberAbove(0, 1)),
    )
    .option('--speculation-depth <n>', 'draft tokens a decode step; 0 is off', wholeNumber(0, 8), 0)
    .addOption(
      new Option('--policy <name>', 'scheduling policy').choices(['fcfs', 'priority']).default('fcfs'),
    );
}

/**
 * Most requests that run at once.
 * @throws InputError as vLLM does, when more should run than there are places.
 */
export function runningLimit({ maxNumSeqs, maxNumActiveSeqs = maxNumSeqs }: EngineOptions): number {
  if (maxNumActiveSeqs <= maxNumSeqs) return maxNumActiveSeqs;
  throw new InputError(
    `Expected --max-num-active-seqs to be at most --max-num-seqs, which is ${maxNumSeqs}, got ${maxNumActiveSeqs}`,
  );
}
