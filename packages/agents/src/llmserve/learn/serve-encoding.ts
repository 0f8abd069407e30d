import {
  activeKnobs,
  type KnobMask,
  QUANTIZATION_TIERS,
  type ServeAction,
  type ServeObservation,
} from '@servegym/environments';
import type { PolicyStep } from '../../core/policy.ts';
import { type ActionBins, ActionCodec } from '../../learning/action-codec.ts';

/**
 * The values of each knob that a learner chooses from, about evenly spaced on a logarithmic scale where a knob acts in
 * proportion.
 */
const SERVE_ACTION_BINS = {
  batch_cap: [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
  kv_budget_fraction: [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1],
  speculation_depth: [0, 1, 2, 3, 4, 5, 6, 8],
  quantization_tier: QUANTIZATION_TIERS,
  prefill_decode_split: [false, true],
  priority_routing: [false, true],
} as const satisfies ActionBins<ServeAction>;

/** A head for each knob that a task leaves free. */
export class ServeActionCodec extends ActionCodec<ServeAction> {
  constructor(task: KnobMask) {
    super(SERVE_ACTION_BINS, activeKnobs(task), task.defaultAction, ['batch_cap', 'kv_budget_fraction']);
  }
}

/** Weight of a new window in the slow averages: they remember about ten windows. */
const SLOW_WEIGHT = 0.1;
/** And in the fast ones: about two, enough to smooth the noise of a window. */
const FAST_WEIGHT = 0.4;

/**
 * Encodes a step as numbers of about the same size: the last window, heavy-tailed amounts by their
 * logarithm; the configuration in force, without which the effect of a change cannot be told, and for how long its weights
 * have been; and the traffic smoothed, and compared to its slow average. Remembers the episode: `reset` it for each.
 */
export class ServeObservationEncoder {
  /** Numbers that `encode` writes. */
  static readonly size = 31;
  #slowArrivals = Number.NaN;
  #slowPrompts = Number.NaN;
  #fastArrivals = Number.NaN;
  #fastPrompts = Number.NaN;
  #fastCompliance = Number.NaN;
  #lastQueue = 0;
  #weights: ServeAction['quantization_tier'] | undefined;
  #weightsKept = 0;

  reset(): void {
    this.#slowArrivals = Number.NaN;
    this.#slowPrompts = Number.NaN;
    this.#fastArrivals = Number.NaN;
    this.#fastPrompts = Number.NaN;
    this.#fastCompliance = Number.NaN;
    this.#lastQueue = 0;
    this.#weights = undefined;
    this.#weightsKept = 0;
  }

  /** Writes the features of a step. Call it once for each window, in order. */
  encode(
    {
      observation,
      previousAction,
    }: Pick<PolicyStep<ServeAction, ServeObservation>, 'observation' | 'previousAction'>,
    features: Float32Array,
  ): void {
    const arrivals = Math.log1p(observation.request_arrival_rate);
    this.#slowArrivals = average(this.#slowArrivals, arrivals, SLOW_WEIGHT);
    this.#fastArrivals = average(this.#fastArrivals, arrivals, FAST_WEIGHT);
    const promptsSeen = observation.mean_prompt_length > 0;
    // A window without arrivals says nothing about the prompts: they are taken to be as they were.
    const prompts = promptsSeen ? Math.log1p(observation.mean_prompt_length) : this.#slowPrompts || 0;
    if (promptsSeen) {
      this.#slowPrompts = average(this.#slowPrompts, prompts, SLOW_WEIGHT);
      this.#fastPrompts = average(this.#fastPrompts, prompts, FAST_WEIGHT);
    }
    this.#fastCompliance = average(this.#fastCompliance, observation.slo_compliance_rate, FAST_WEIGHT);
    const queue = Math.log1p(observation.queue_depth);
    this.#weightsKept = this.#weights === previousAction.quantization_tier ? this.#weightsKept + 1 : 0;
    this.#weights = previousAction.quantization_tier;
    let at = 0;
    const put = (value: number) => {
      features[at++] = value;
    };

    put(queue);
    put(Math.log1p(observation.active_requests));
    put(observation.kv_cache_occupancy);
    put(prompts);
    put(Math.log1p(observation.p50_ttft_ms));
    put(Math.log1p(observation.p99_ttft_ms));
    put(Math.log1p(observation.p50_itl_ms));
    put(Math.log1p(observation.throughput_tps));
    put(observation.slo_compliance_rate);
    put(observation.gpu_memory_used_gb / 10);
    put(Math.log1p(1000 * observation.estimated_cost_per_1k));
    put(arrivals);
    put(observation.spec_acceptance_rate);
    put(Math.log1p(observation.eviction_events));

    put(Math.log2(previousAction.batch_cap));
    put(previousAction.kv_budget_fraction);
    put(previousAction.speculation_depth / 4);
    put(previousAction.quantization_tier === 'INT8' ? 1 : 0);
    put(previousAction.quantization_tier === 'INT4' ? 1 : 0);
    put(previousAction.prefill_decode_split ? 1 : 0);
    put(previousAction.priority_routing ? 1 : 0);

    put(Math.log2((1 + observation.queue_depth) / previousAction.batch_cap));
    put(observation.active_requests / previousAction.batch_cap);
    put(arrivals - this.#slowArrivals);
    put(prompts - (this.#slowPrompts || 0));
    put(Math.log1p(observation.step_index));

    put(this.#fastArrivals);
    put(this.#fastPrompts || 0);
    put(this.#fastCompliance);
    put(queue - this.#lastQueue);
    put(Math.log1p(this.#weightsKept));
    this.#lastQueue = queue;
  }
}

function average(old: number, value: number, weight: number): number {
  return Number.isNaN(old) ? value : old + weight * (value - old);
}
