import type { ServeTrace } from '../../llmserve/requests/request-source.ts';
import type { KnobMask } from '../../masked-knobs.ts';
import type { RequestStream } from '../requests/request-stream.ts';
import type { FleetAction, FleetKnob } from '../schema.ts';

/** Classes of requests, most urgent first. The index is the priority in the engine and at the gateway. */
export const FLEET_CLASSES = ['interactive', 'batch', 'best_effort'] as const;
export type FleetClass = (typeof FLEET_CLASSES)[number];

/** Latency objectives of a class. A request earns its price when it meets all that are given. */
export interface FleetObjective {
  /** Time to first token, ms. */
  readonly ttftMs?: number;
  /** Mean time per output token after the first, ms. */
  readonly tpotMs?: number;
  /** Time from arrival to the last token, ms. */
  readonly e2eMs?: number;
}

/** Price of a class, USD for a million tokens. */
export interface TokenPrice {
  readonly usdPerMillionInput: number;
  readonly usdPerMillionOutput: number;
}

/** Replicas of one kind. */
export interface FleetPoolTask {
  /** Engine profile of a replica. */
  readonly profile: string;
  /** Least and most seconds of a cold start. */
  readonly coldStartSeconds: readonly [number, number];
}

/** One task of `fleet`. All that makes it what it is stands in its file. */
export interface FleetTask extends KnobMask<FleetAction>, FleetPoolTask {
  readonly id: string;
  readonly name: string;
  readonly difficulty: 'easy' | 'medium' | 'hard';
  readonly description: string;
  /** Windows of an episode. */
  readonly windows: number;
  /** Length of a window, s. */
  readonly windowSeconds: number;
  /** Replicas on other GPUs, which serve the same model beside the first. Default: all replicas are alike. */
  readonly second?: FleetPoolTask;
  /** Replicas that there are GPUs for, of both kinds together. */
  readonly maxReplicas: number;
  /** Period at which the gateway sees the replicas' metrics, ms. */
  readonly metricsIntervalMs: number;
  /** Failures of a replica an hour. */
  readonly failuresPerHour: number;
  readonly objectives: Readonly<Record<FleetClass, FleetObjective>>;
  readonly prices: Readonly<Record<FleetClass, TokenPrice>>;
  /** USD that a reward of 1 stands for: about what a window of the task's mean traffic is worth. */
  readonly referenceUsd: number;
  /** Settings in force when an episode begins. */
  readonly defaultAction: FleetAction;
  readonly streams: readonly RequestStream[];
  /** Requests of a trace instead of the streams, `rateScale` times as fast as recorded; its end is that of the requests. */
  readonly trace?: { readonly requests: ServeTrace; readonly rateScale: number };
}

/** The knobs that decide nothing in a task: those that it masks, and the replicas of a second kind where it has none. */
export function idleFleetKnobs({ maskedKnobs = [], second }: FleetTask): readonly FleetKnob[] {
  return second === undefined ? [...new Set([...maskedKnobs, 'second_replicas' as const])] : maskedKnobs;
}
