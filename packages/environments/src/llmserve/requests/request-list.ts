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
