import { type EngineProfile, portableMath } from '@servegym/simulator';
import type { LaunchSettings } from './engine-flags.ts';

type Speculation = NonNullable<EngineProfile['speculation']>;

/**
 * Exponent by which misses fall with the number of candidates: the authors of Medusa (sites.google.com/view/medusa-llm, 2023) tell
 * of heads that guess about 60 % of the tokens with one candidate and more than 80 % with five. Other heads may differ.
 */
const MISSES = portableMath.log(0.4 / 0.2) / portableMath.log(5);

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
