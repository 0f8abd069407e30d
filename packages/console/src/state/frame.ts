import type { Fields, Outcome, PlayedStep } from '../api/wire.ts';
import { readTelemetry, type Telemetry } from '../llmserve/telemetry.ts';

/** One window of an episode as the page shows it. Frame 0 is the reset. */
export interface Frame {
  readonly index: number;
  /** `undefined` for the reset. */
  readonly action?: Fields;
  readonly observation: Fields;
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
    reward: null,
    done: outcome.done,
    telemetry: readTelemetry(outcome.metadata),
    totalReward: 0,
  };
}

export function nextFrame(previous: Frame, step: PlayedStep): Frame {
  return {
    index: previous.index + 1,
    action: step.action,
    observation: step.observation,
    reward: step.reward,
    done: step.done,
    telemetry: readTelemetry(step.metadata),
    totalReward: previous.totalReward + (step.reward ?? 0),
  };
}

/** A numeric field of the observation; `undefined` when the server does not give it. */
export function observed(frame: Frame, field: string): number | undefined {
  const value = frame.observation[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
