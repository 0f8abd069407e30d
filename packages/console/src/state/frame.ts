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
