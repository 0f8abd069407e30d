import type { EngineOptions } from '../engine/engine-config.ts';
import type { EngineProfile } from './engine-profile.ts';

/** The options of an engine that its profile decides. */
export function engineOptionsOf(profile: EngineProfile): EngineOptions {
  const { name: _, version: __, ...scheduler } = profile.engine;
  return {
    ...scheduler,
    blockTokens: profile.memory.blockTokens,
    requestOverheadMs: profile.requestOverheadMs,
    requestOverheadJitter: profile.requestOverheadJitter,
    requestOverheadPerTokenUs: profile.requestOverheadPerTokenUs,
  };
}
