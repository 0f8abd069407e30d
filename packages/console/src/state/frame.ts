import type { Fields, Outcome, PlayedStep } from '../api/wire.ts';
import { readTelemetry, type Telemetry } from '../llm-server/telemetry.ts';

/** One window of an episode as the page shows it. Frame 0 is the reset. */
export interface Frame {
  readonly index: number;
  /** `undefined` for the reset. */
  readonly action?: Fields;
  /** Driver that chose the action; `undefined` for the reset. */
  readonly driver?: string;
  /** Why the policy chose the action, where it tells. */
  readonly explanation?: Fields;
  readonly observation: Fields;
  readonly metadata: Fields;
  readonly reward: number | null;
  readonly done: boolean;
  readonly telemetry: Telemetry;
  /** Sum of the rewards up to here. */
  readonly totalReward: number;
}

export function firstFrame(outcome: Outcome): Frame {
  return {
    index: 0,
    observation: outcome.observation,
    metadata: outcome.metadata,
    reward: null,
    done: outcome.done,
    telemetry: readTelemetry(outcome.metadata),
    totalReward: 0,
  };
}

export function nextFrame(previous: Frame, step: PlayedStep, driver?: string): Frame {
  return {
    index: previous.index + 1,
    action: step.action,
    driver,
    explanation: step.explanation,
    observation: step.observation,
    metadata: step.metadata,
    reward: step.reward,
    done: step.done,
    telemetry: readTelemetry(step.metadata),
    totalReward: previous.totalReward + (step.reward ?? 0),
  };
}

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
