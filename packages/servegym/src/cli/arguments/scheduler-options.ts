import {
  BATCH_DEPTHS,
  type BatchDepth,
  DRAFTERS,
  type Drafter,
  type EngineProfile,
  isBatchDepths,
  MOST_API_SERVERS,
  VLLM_FRONT_END,
} from '@servegym/simulator';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { numberFrom, wholeNumber } from './options.ts';

/** Settings of vLLM's scheduler and front end that take the place of those of the profile. */
export interface SchedulerOptions {
  readonly longPrefillTokenThreshold?: number;
  readonly longPrefillTokenThresholdAdaptive?: boolean;
  /** Share of the KV blocks that admissions leave free. */
  readonly watermark?: number;
  readonly schedulerReserveFullIsl?: boolean;
  readonly asyncScheduling?: boolean;
  readonly drafter?: Drafter;
  readonly speculationDepthPerBatchSize?: readonly BatchDepth[];
  readonly apiServerCount?: number;
}

/** Adds the options, named as those of vLLM. */
export function addSchedulerOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--long-prefill-token-threshold <n>',
        'most tokens of a prompt that an iteration computes beside other requests; 0 is no limit',
      ).argParser(wholeNumber(0, 10_000_000)),
    )
    .option(
      '--long-prefill-token-threshold-adaptive',
      'let that be at least an equal share of the token budget',
    )
    .addOption(
      new Option(
        '--watermark <share>',
        'share of the KV blocks that an admission leaves free while others run',
      ).argParser(numberFrom(0, 0.99)),
    )
    .option('--scheduler-reserve-full-isl', 'admit a request only when its whole prompt fits')
    .option('--no-scheduler-reserve-full-isl', 'admit a request when its first chunk fits')
    .option('--async-scheduling', 'schedule an iteration while the one before it runs')
    .option('--no-async-scheduling', 'schedule an iteration when the one before it has ended')
    .addOption(
      new Option(
        '--drafter <method>',
        'who drafts: n-grams, or a drafter with a KV cache, as EAGLE and MTP are',
      ).choices(DRAFTERS),
    )
    .addOption(
      new Option(
        '--speculation-depth-per-batch-size <json>',
        'draft tokens by the requests of an iteration, at most --speculation-depth, such as [[1,16,3],[17,64,1]]',
      ).argParser(batchDepths),
    )
    .addOption(apiServerCountOption());
}

/** Processes of the front end, which then has a queue. */
export function apiServerCountOption(): Option {
  return new Option(
    '--api-server-count <n>',
    'processes that tokenize, answer HTTP and stream, each with a queue (default: those of the profile, otherwise no queue)',
  ).argParser(wholeNumber(1, MOST_API_SERVERS));
}

/**
 * A profile of an engine that was started with the options that are set.
 * @throws InputError when an option needs another.
 */
export function withSchedulerOptions(profile: EngineProfile, options: SchedulerOptions): EngineProfile {
  const set = {
    longPrefillTokenThreshold: options.longPrefillTokenThreshold,
    longPrefillTokenThresholdAdaptive: options.longPrefillTokenThresholdAdaptive,
    watermark: options.watermark,
    wholePromptFits: options.schedulerReserveFullIsl,
    asyncScheduling: options.asyncScheduling,
    drafter: options.drafter,
    speculationDepthPerBatchSize: options.speculationDepthPerBatchSize,
  };
  const given = Object.fromEntries(Object.entries(set).filter(([, value]) => value !== undefined));
  const engine = { ...profile.engine, ...given };
  if (engine.longPrefillTokenThresholdAdaptive && !engine.longPrefillTokenThreshold) {
    throw new InputError(
      'Expected --long-prefill-token-threshold above 0 with --long-prefill-token-threshold-adaptive, which raises it',
    );
  }
  return withApiServers({ ...profile, engine }, options.apiServerCount);
}

/** A profile of an engine behind so many API servers. They take the CPU time that the profile has, else that of vLLM's. */
export function withApiServers(profile: EngineProfile, processes: number | undefined): EngineProfile {
  if (processes === undefined) return profile;
  return { ...profile, frontEnd: { ...(profile.frontEnd ?? VLLM_FRONT_END), processes } };
}

function batchDepths(text: string): BatchDepth[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (isBatchDepths(value)) return value;
  throw new InvalidArgumentError(`Expected ${BATCH_DEPTHS}, as JSON, got \`${text}\`.`);
}
