import type { Trace } from '@servegym/simulator';
import type { FittedWorkload } from '../workload/fitted-workload.ts';
import type { PromptPrefixes } from './prompt-prefixes.ts';

/** Requests in order of arrival, before they are sorted into windows. */
export interface RequestList {
  /** s from the start of the episode. */
  readonly arrivalSeconds: readonly number[];
  readonly inputTokens: readonly number[];
  readonly outputTokens: readonly number[];
  /** Index into `REQUEST_CLASSES`. */
  readonly classes: readonly number[];
  readonly prefixes?: PromptPrefixes;
}

/** Requests that come from elsewhere than a task's phases. */
export interface RequestSource {
  /** Name of the phase in reports. */
  readonly name: string;
  readonly requests:
    | { readonly kind: 'workload'; readonly model: FittedWorkload }
    | { readonly kind: 'trace'; readonly trace: ServeTrace };
  /** Arrivals come this many times as fast as at the source. */
  readonly rateScale: number;
  /** Prompts are this many times as long as at the source. */
  readonly promptScale: number;
}

/** A trace that an episode can be played on. */
export interface ServeTrace extends Trace {
  /** SHA-256 of its requests, in hexadecimal: episodes on another trace of the same name are told apart by it. */
  readonly digest: string;
  /** Index into `REQUEST_CLASSES`, for each request. Without it, the task's shares decide. */
  readonly classes?: Uint8Array;
}
