import type { RequestView } from '../policy/views.ts';
import type { PromptPrefix } from './prefix-cache.ts';

/** A request as it is handed to an engine. */
export interface EngineRequest {
  /** The caller's number for it; comes back in the logs. */
  readonly id: number;
  /** Tick of arrival; not before that of the request submitted last. */
  readonly arrival: number;
  /** Prompt tokens, >= 1. */
  readonly input: number;
  /** Tokens to generate, >= 1. */
  readonly output: number;
  /** 0 (most urgent) .. 7. Default 0. */
  readonly priority?: number;
  /** LoRA adapter that it asks for, from 1 on; 0 is the base model. Default 0. */
  readonly adapter?: number;
  /** Prefix that the prompt shares with others. Ids are whole numbers from 0. Matters with `prefixCaching` only. */
  readonly prefix?: PromptPrefix | null;
  /** The request as a policy sees it, where one orders the queue. */
  readonly view?: RequestView;
}
