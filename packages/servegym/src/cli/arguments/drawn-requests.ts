import { drawLengths, type Trace } from '@servegym/simulator';
import { type Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { numberAbove, wholeNumber } from './options.ts';

/** Most requests or tokens of a load, as options take them. */
export const MOST_REQUESTS = 100_000_000;
const MOST_TOKENS = 10_000_000;

/** Requests that a load generator draws, by nominal lengths. */
export interface DrawnRequests {
  readonly concurrency: number;
  readonly requests?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly lengthRange?: number;
  readonly seed: number;
}

/** Requests for each of those in flight, when nobody says how many. */
const REQUESTS_EACH = 10;

/** The requests that are drawn when there is a concurrency and no trace. @throws InputError */
export function drawnRequests({ concurrency, inputTokens, outputTokens, ...options }: DrawnRequests): Trace {
  if (inputTokens === undefined || outputTokens === undefined) {
    throw new InputError('--concurrency needs a --trace, or --input-tokens and --output-tokens');
  }
  const { requests = REQUESTS_EACH * concurrency, lengthRange: range, seed } = options;
  return drawLengths({ requests, inputTokens, outputTokens, range, seed });
}

/** Adds `--concurrency`, `--input-tokens`, `--output-tokens` and `--length-range` to a command. */
export function addDrawnRequests(command: Command): Command {
  return addDrawnLengths(
    command.addOption(
      new Option(
        '--concurrency <n>',
        'keep n requests in flight, or n conversations of a trace that has them; arrivals in the trace are ignored',
      ).argParser(wholeNumber(1, 1_000_000)),
    ),
  );
}

/** Adds `--input-tokens`, `--output-tokens` and `--length-range` to a command. */
export function addDrawnLengths(command: Command): Command {
  return command
    .addOption(
      new Option('--input-tokens <n>', 'prompt of each request that does not come from a trace')
        .argParser(wholeNumber(1, MOST_TOKENS))
        .conflicts('trace'),
    )
    .addOption(
      new Option('--output-tokens <n>', 'output of each request that does not come from a trace')
        .argParser(wholeNumber(1, MOST_TOKENS))
        .conflicts('trace'),
    )
    .addOption(
      new Option(
        '--length-range <share>',
        'draw lengths uniformly between this share of --input-tokens and --output-tokens and all of them (default: 1)',
      )
        .argParser(numberAbove(0, 1))
        .conflicts(['trace', 'closedBatch']),
    );
}
