import { type EngineProfile, portableMath } from '@servegym/simulator';
import type { LaunchSettings } from './engine-flags.ts';

type Speculation = NonNullable<EngineProfile['speculation']>;

/**
 * Exponent by which misses fall with the number of candidates: the authors of Medusa (sites.google.com/view/medusa-llm, 2023) tell
 * of heads that guess about 60 % of the tokens with one candidate and more than 80 % with five. Other heads may differ.
 */
const MISSES = portableMath.log(0.4 / 0.2) / portableMath.log(5);

/**
 * By the memory of a GPU from so many GiB on: prompt tokens of a chunk, and sequences of the largest CUDA graph on up to three GPUs and
 * on more (`_handle_gpu_memory_settings` in `server_args.py` of SGLang 0.5.4).
 */
const BY_MEMORY = [
  [160, 16384, 512, 512],
  [60, 8192, 256, 512],
  [35, 4096, 32, 160],
  [0, 2048, 24, 80],
] as const;
/** Requests that run at once where no flag says it, least of what `init_memory_pool` takes, and those with drafts (`_handle_speculative_decoding`). */
const RUNNING = 2048;
const RUNNING_WITH_DRAFTS = 48;

/** Defaults of SGLang where a line does not name them; `memoryShare` is for weights and KV alone. */
export function sglangDefaults(settings: LaunchSettings, { gpu }: EngineProfile) {
  const [, chunk, small, large] = BY_MEMORY.find(([from]) => gpu.memoryGiB >= from)!;
  const hasDrafts = (settings.speculationDepth ?? 0) > 0;
  const { maxNumBatchedTokens = chunk } = settings;
  const graphs = gpu.count < 4 ? small : large;
  const reservedMiB = 512 + 1.5 * Math.max(maxNumBatchedTokens, 2048) + 2 * graphs + 128 * gpu.count;
  const least = gpu.memoryGiB > 60 ? 10 * 1024 : 0;
  const reservedGiB = Math.max(reservedMiB, least) / 1024 + (hasDrafts ? 2 : 0);
  return {
    maxNumSeqs: hasDrafts ? RUNNING_WITH_DRAFTS : RUNNING,
    ...{ maxNumBatchedTokens, memoryShare: 1 - reservedGiB / gpu.memoryGiB },
  };
}

/** SGLang chooses the drafts where a line names an algorithm alone (`auto_choose_speculative_params`): chains for DeepSeek. */
export function withSglangDrafts(settings: LaunchSettings, { model }: EngineProfile): LaunchSettings {
  if (settings.draft?.method === undefined || settings.speculationDepth !== undefined) return settings;
  if (/deepseek/i.test(model.name)) return { ...settings, speculationDepth: 3 };
  return { ...settings, speculationDepth: 5, draftCandidates: 4, verifyTokens: 8 };
}

/**
 * Speculation with a tree of drafts instead of a chain, as SGLang's EAGLE has it: a draft pass computes `candidates` tokens for each
 * sequence, a step verifies `verifyTokens`, and more are accepted. How many is derived from the acceptance of the chain, a
 * choice: nobody has published it by place for the heads in use. With one candidate it is a chain, whatever the tokens.
 */
export function withTree(speculation: Speculation, settings: LaunchSettings): Speculation {
  const { speculationDepth = 0, draftCandidates: candidates = 1 } = settings;
  const { verifyTokens = speculationDepth + 1 } = settings;
  if (candidates === 1) return speculation;
  const kinds = Object.entries<readonly number[]>(speculation.survival).map(([kind, chain]) => {
    return [kind, treeSurvival(chain.slice(0, speculationDepth), candidates, verifyTokens)];
  });
  const draftPerTokenUs = speculation.draftPerTokenUs * candidates;
  return { ...speculation, verifyTokens, draftPerTokenUs, survival: Object.fromEntries(kinds) };
}

/** P(at least k draft tokens accepted) of the tree with the likeliest candidates, from that of a chain. */
function treeSurvival(chain: readonly number[], candidates: number, verifyTokens: number): number[] {
  const drafts: { readonly depth: number; readonly share: number }[] = [];
  let parents = [1];
  for (const [depth, survival] of chain.entries()) {
    const miss = 1 - survival / ((depth === 0 ? 1 : chain[depth - 1]) || 1);
    const missed = (tried: number) => (tried === 0 ? 1 : miss * portableMath.pow(tried, -MISSES));
    const ranks = Array.from({ length: candidates }, (_, i) => missed(i) - missed(i + 1));
    const grown = parents.flatMap((share) => ranks.map((rank) => share * rank)).sort((a, b) => b - a);
    drafts.push(...grown.map((share) => ({ depth, share })));
    parents = grown.slice(0, candidates);
  }
  const verified = drafts.sort((a, b) => b.share - a.share || a.depth - b.depth).slice(0, verifyTokens - 1);
  return chain.map((_, at) =>
    verified.reduce((sum, { depth, share }) => sum + (depth === at ? share : 0), 0),
  );
}
