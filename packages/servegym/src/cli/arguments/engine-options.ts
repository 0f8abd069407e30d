import { type SchedulingPolicy, WEIGHT_PRECISIONS, type WeightPrecision } from '@servegym/simulator';
import { type Command, Option } from 'commander';
import { numberAbove, wholeNumber } from './options.ts';

/** Settings of an engine, in the commands that run one. */
export interface EngineOptions {
  readonly weights: WeightPrecision;
  /** Sequences at once. */
  readonly maxNumSeqs: number;
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
  return command
    .addOption(
      new Option('--weights <precision>', 'precision of the weights')
        .choices(WEIGHT_PRECISIONS)
        .default('FP16'),
    )
    .option('--max-num-seqs <n>', 'sequences at once', wholeNumber(1, 1_000_000), 256)
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
