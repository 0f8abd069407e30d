import type { Drafter, EngineOptions, HostKv } from '../engine/engine-config.ts';
import { SimulatorError } from '../simulator-error.ts';
import type { EngineProfile } from './engine-profile.ts';
import { kvGroupsOf } from './kv-pool.ts';

/** Methods of drafts (vLLM speculative_config.method) whose drafter has a KV cache. */
const WITH_KV = ['eagle', 'eagle3', 'mtp'];

/**
 * The options of an engine that its profile decides.
 * @param speculates Whether it starts with speculation: vLLM does not schedule the drafts of n-grams ahead.
 */
export function engineOptionsOf(profile: EngineProfile, speculates: boolean): EngineOptions {
  const { name: _, version: __, maxLoraRank: ___, ...scheduler } = profile.engine;
  const groups = kvGroupsOf(profile);
  const drafter = scheduler.drafter ?? drafterOf(profile);
  return {
    ...scheduler,
    drafter,
    asyncScheduling: scheduler.asyncScheduling && !(speculates && drafter === 'ngram'),
    blockTokens: profile.memory.blockTokens,
    ...(groups !== undefined && { kvGroups: groups.attention }),
    requestOverheadMs: profile.requestOverheadMs,
    requestOverheadJitter: profile.requestOverheadJitter,
    requestOverheadPerTokenUs: profile.requestOverheadPerTokenUs,
    ...(profile.frontEnd !== undefined && { frontEnd: profile.frontEnd }),
    ...(profile.hostKv !== undefined && { hostKv: hostKvOf(profile, profile.hostKv) }),
  };
}

/** Each GPU of a replica of the attention loads its share of a token's KV over a link of its own. */
function hostKvOf(
  { model, memory, gpu, parallel }: EngineProfile,
  { sizeGiB, gigabytesPerSecond }: NonNullable<EngineProfile['hostKv']>,
): HostKv {
  const links = gpu.count / (parallel?.data ?? 1);
  return {
    blocks: Math.floor((sizeGiB * 2 ** 30) / (model.kvBytesPerToken * memory.blockTokens)),
    loadNsPerToken: model.kvBytesPerToken / (gigabytesPerSecond * links),
  };
}

function drafterOf({ speculation }: EngineProfile): Drafter {
  return WITH_KV.includes(speculation?.method.toLowerCase() ?? '') ? 'eagle' : 'ngram';
}

/**
 * P(at least k draft tokens accepted), k = 1, 2, ..., for one kind of text.
 * @throws SimulatorError naming the tables there are.
 */
export function acceptanceTable(profile: EngineProfile, kind: string): readonly number[] {
  const survival = profile.speculation?.survival[kind];
  if (survival !== undefined) return survival;
  const known = Object.keys(profile.speculation?.survival ?? {});
  throw new SimulatorError(
    'PROFILE_ACCEPTANCE',
    known.length === 0
      ? `Profile \`${profile.name}\` has no draft model: the speculation depth must be 0`
      : `Expected an acceptance table of profile \`${profile.name}\` (${known.join(', ')}), got \`${kind}\``,
  );
}
