import type { KnobMask } from '../../masked-knobs.ts';
import type { RequestSource } from '../requests/request-source.ts';
import type { ServeAction, ServeKnob } from '../schema.ts';

/** Priority classes of requests, most urgent first. The index is the engine's priority. */
export const REQUEST_CLASSES = ['interactive', 'batch', 'best_effort'] as const;
export type RequestClass = (typeof REQUEST_CLASSES)[number];

/** A log-normal length, held within its bounds: a draw outside is set to the nearest bound. */
export interface LengthDistribution {
  /** Tokens. */
  readonly median: number;
  /** Standard deviation of the logarithm. */
  readonly sigma: number;
  readonly min: number;
  readonly max: number;
}

/** Requests of one class within a phase. */
interface ClassTraffic {
  /** Share of the phase's arrivals; the shares of a phase sum to 1. */
  readonly share: number;
  readonly prompt: LengthDistribution;
  readonly output: LengthDistribution;
}

/** A stretch of windows with traffic of one kind. Ranges are drawn uniformly, once for each occurrence. */
export interface Phase {
  readonly name: string;
  /** Weight in the draw of the next phase. */
  readonly weight: number;
  /** Duration, windows. */
  readonly windows: readonly [number, number];
  readonly arrivalsPerSecond: readonly [number, number];
  /** Standard deviation of the logarithm of a window's rate around the phase's. */
  readonly burstiness: number;
  readonly traffic: Partial<Record<RequestClass, ClassTraffic>>;
  /** Memory that co-located tenants take on each GPU, GiB. */
  readonly tenantGiB: readonly [number, number];
  /** Acceptance table of the profile that fits the text of this phase. Default: the task's. */
  readonly acceptance?: string;
  /** Reward that a unit of output quality is worth: the cost of a tier is this times (1 - its quality). */
  readonly qualityValue: number;
}

/** Latency objectives of a class. */
export interface ServiceObjective {
  /** Time to first token, ms. */
  readonly ttftMs: number;
  /** Mean time per output token after the first, ms. */
  readonly tpotMs: number;
  /** Weight of a request of this class in the SLO part of the reward. */
  readonly weight: number;
}

/** Weights of the parts of the reward. They sum to at most 1 on either side, so that the reward stays in [-1, 1]. */
export interface RewardWeights {
  readonly throughput: number;
  readonly slo: number;
  /** Price of the whole memory of the GPUs. What weights, draft and KV pool do not hold is worth money to the tenants. */
  readonly memory: number;
  readonly cost: number;
}

/** One task of `llmserve`. All that makes it what it is stands in its file. */
export interface ServeTask extends KnobMask<ServeAction> {
  readonly id: string;
  readonly name: string;
  readonly difficulty: 'easy' | 'medium' | 'hard';
  readonly description: string;
  /** Windows of an episode. */
  readonly windows: number;
  /** Length of a window, s. */
  readonly windowSeconds: number;
  /** Engine profile of the server's two GPUs. */
  readonly profile: string;
  /** Acceptance table of the profile that fits the traffic. */
  readonly acceptance: string;
  readonly objectives: Readonly<Record<RequestClass, ServiceObjective>>;
  readonly reward: RewardWeights;
  /** Cost of 1,000 output tokens at which the cost part is fully charged, USD. */
  readonly referenceCostPer1k: number;
  /** Settings of a sane operator. `reset` applies them. */
  readonly defaultAction: ServeAction;
  /** For instance the precision, where a server cannot change it while it runs. */
  readonly maskedKnobs?: readonly ServeKnob[];
  /** The first of these opens every episode; the others follow in random order, never twice in a row. */
  readonly phases: readonly Phase[];
  /** Source of the requests instead of the phases, which then say only whose they are. */
  readonly source?: RequestSource;
}
