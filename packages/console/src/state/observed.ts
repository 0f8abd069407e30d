import type { Fields } from '../api/wire.ts';
import type { Frame } from './frame.ts';

/** Names under which other environments of LLM servers observe the same quantity, in the same unit. */
const SYNONYMS: Readonly<Record<string, string>> = {
  request_arrival_rate: 'arrival_rate',
  mean_prompt_length: 'mean_prompt_len',
  p50_ttft_ms: 'ttft_p50',
  p50_itl_ms: 'tpot_p50',
  spec_acceptance_rate: 'spec_accept_rate',
};

/** Names under which the metrics of a window, beside its observation, tell what the observation does not. */
const METRICS: Readonly<Record<string, string>> = {
  throughput_tps: 'tokens_per_sec',
  p99_ttft_ms: 'ttft_p99_ms',
  eviction_events: 'eviction_events',
};

/** The field of the observation that holds a quantity, by its own name or a synonym. */
export function fieldNamed(observation: Fields, name: string): string | undefined {
  if (name in observation) return name;
  const synonym = SYNONYMS[name];
  return synonym !== undefined && synonym in observation ? synonym : undefined;
}

/** A numeric quantity of the observation; `undefined` when the server does not give it. */
export function observed({ observation, metadata }: Frame, name: string): number | undefined {
  const field = fieldNamed(observation, name);
  if (field !== undefined) return finite(observation[field]);
  // The share inside the SLO, where the server tells the share outside.
  if (name !== 'slo_compliance_rate')
    return name in METRICS ? finite((metadata.metrics as Fields | undefined)?.[METRICS[name]]) : undefined;
  const violations = finite(observation.slo_violation_rate);
  return violations === undefined ? undefined : 1 - violations;
}

function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
