/** Figures of a vLLM-compatible server at one moment. */
export interface VllmReading {
  readonly running: number;
  readonly waiting: number;
  /** Mean over its engines. */
  readonly kvUsage: number;
  /** Since the server's start. */
  readonly preemptions: number;
  readonly draftTokens: number;
  readonly acceptedTokens: number;
  /** Time to first token and inter-token latency: sum, s, and count. */
  readonly ttftSumS: number;
  readonly ttftCount: number;
  readonly itlSumS: number;
  readonly itlCount: number;
}

const LONGEST_WAIT_MS = 2000;

/**
 * Reads `/metrics` of a vLLM-compatible server; `null` when it has none, does not answer in time, or lacks what every
 * vLLM has. What only some have (drafts) counts 0 where it is missing.
 */
export async function readVllmMetrics(root: string, signal: AbortSignal): Promise<VllmReading | null> {
  let text: string;
  try {
    const answer = await fetch(`${root}/metrics`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_WAIT_MS)]),
    });
    if (!answer.ok) return null;
    text = await answer.text();
  } catch {
    return null;
  }
  const samples = (name: string): number[] =>
    Array.from(text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm')), ([, value]) =>
      Number(value),
    );
  const sum = (name: string) => samples(name).reduce((total, value) => total + value, 0);
  const usage = samples('vllm:kv_cache_usage_perc');
  if (usage.length === 0) return null;
  return {
    running: sum('vllm:num_requests_running'),
    waiting: sum('vllm:num_requests_waiting'),
    kvUsage: usage.reduce((total, value) => total + value, 0) / usage.length,
    preemptions: sum('vllm:num_preemptions_total'),
    draftTokens: sum('vllm:spec_decode_num_draft_tokens_total'),
    acceptedTokens: sum('vllm:spec_decode_num_accepted_tokens_total'),
    ttftSumS: sum('vllm:time_to_first_token_seconds_sum'),
    ttftCount: sum('vllm:time_to_first_token_seconds_count'),
    itlSumS: sum('vllm:inter_token_latency_seconds_sum'),
    itlCount: sum('vllm:inter_token_latency_seconds_count'),
  };
}
