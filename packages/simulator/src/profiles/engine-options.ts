import type { Drafter, EngineOptions } from '../engine/engine-config.ts';
import type { EngineProfile } from './engine-profile.ts';

/** Methods of drafts (vLLM speculative_config.method) whose drafter has a KV cache. */
const WITH_KV = ['eagle', 'eagle3', 'mtp'];

/**
 * The options of an engine that its profile decides.
 * @param speculates Whether it starts with speculation: vLLM does not schedule the drafts of n-grams ahead.
 */
export function engineOptionsOf(profile: EngineProfile, speculates: boolean): EngineOptions {
  const { name: _, version: __, ...scheduler } = profile.engine;
  const drafter = scheduler.drafter ?? drafterOf(profile);
  return {
    ...scheduler,
    drafter,
    asyncScheduling: scheduler.asyncScheduling && !(speculates && drafter === 'ngram'),
    blockTokens: profile.memory.blockTokens,
    requestOverheadMs: profile.requestOverheadMs,
    requestOverheadJitter: profile.requestOverheadJitter,
    requestOverheadPerTokenUs: profile.requestOverheadPerTokenUs,
  };
}

function drafterOf({ speculation }: EngineProfile): Drafter {
  return WITH_KV.includes(speculation?.method.toLowerCase() ?? '') ? 'eagle' : 'ngram';
}
