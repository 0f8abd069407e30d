import type { WorkloadId } from '../../llmserve/workload/fitted-workload.ts';
import type { FleetClass } from '../tasks/fleet-task.ts';

/** A log-normal number, held within its bounds. */
export interface LogNormal {
  readonly median: number;
  /** Standard deviation of the logarithm. */
  readonly sigma: number;
  readonly min: number;
  readonly max: number;
}

/** Surges of a stream. Each is drawn: its begin, how much it adds, how long it lasts and how long it takes to rise. */
export interface Surges {
  /** Mean time between the begins of two, s. */
  readonly everySeconds: number;
  /** Rate over the rate without the surge, at its height; least and most. */
  readonly factor: readonly [number, number];
  /** Duration, s; least and most. */
  readonly seconds: readonly [number, number];
  /** Time in which the rate rises, and falls again, s. */
  readonly rampSeconds: number;
}

/** Arrivals a second, or begins of sessions a second, over time. */
export interface RateCurve {
  /** Mean over a day. */
  readonly perSecond: number;
  /** Rate at the busiest hour over that at the quietest. 1: the same all day. */
  readonly peakToTrough: number;
  /** Hour of the day with the highest rate. Default 14. */
  readonly peakHour?: number;
  readonly surges?: readonly Surges[];
}

/** Turns of a conversation, each of whose prompts repeats the one before it, its answer, and what is new. */
export interface Turns {
  /** Mean number of turns; geometric. */
  readonly mean: number;
  /** Tokens that a later turn adds: what the user says, or what a tool answered. */
  readonly added: LogNormal;
  /** Time from an answer to the next turn, s. At least the metrics interval of the fleet. */
  readonly thinkSeconds: LogNormal;
  /** Longest prompt, tokens; a conversation ends before it. */
  readonly maxPrompt: number;
}

/** Requests of one kind. */
export interface RequestStream {
  readonly name: string;
  readonly class: FleetClass;
  readonly rate: RateCurve;
  /** Lengths of a first request: those of a fitted public trace, or log-normal tokens. */
  readonly lengths: WorkloadId | { readonly prompt: LogNormal; readonly output: LogNormal };
  /** Prompts, and what later turns add, are this many times as long. Default 1. */
  readonly promptScale?: number;
  /** Tokens that the prompts of an application begin with, and how many applications share the stream. */
  readonly systemPrompt?: { readonly tokens: number; readonly applications: number };
  /**
   * Passages that a retrieval puts behind the system prompt: `each` of so many tokens, `passages` of them, drawn from
   * `documents` with the popularity of rank r in proportion to r^-exponent.
   */
  readonly retrieval?: {
    readonly documents: number;
    readonly passages: number;
    readonly tokens: number;
    readonly exponent: number;
  };
  readonly turns?: Turns;
}
