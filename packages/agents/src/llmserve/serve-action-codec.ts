import { QUANTIZATION_TIERS, type QuantizationTier, type ServeAction } from '@servegym/environments';

/**
 * The values of each knob that a learner chooses from, about evenly spaced on a logarithmic scale where a knob acts in
 * proportion. One head of a factored policy for each knob, in this order.
 */
export const SERVE_ACTION_BINS = {
  batch_cap: [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
  kv_budget_fraction: [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1],
  speculation_depth: [0, 1, 2, 3, 4, 5, 6, 8],
  quantization_tier: QUANTIZATION_TIERS,
  prefill_decode_split: [false, true],
  priority_routing: [false, true],
} as const satisfies { readonly [Knob in keyof ServeAction]: readonly ServeAction[Knob][] };

/** Bins of each knob. */
export const SERVE_HEAD_SIZES: readonly number[] = Object.values(SERVE_ACTION_BINS).map(
  (bins) => bins.length,
);

/** The action of a row of bins, one a knob. */
export function decodeServeAction(bins: ArrayLike<number>): ServeAction {
  return {
    batch_cap: SERVE_ACTION_BINS.batch_cap[bins[0]!]!,
    kv_budget_fraction: SERVE_ACTION_BINS.kv_budget_fraction[bins[1]!]!,
    speculation_depth: SERVE_ACTION_BINS.speculation_depth[bins[2]!]!,
    quantization_tier: SERVE_ACTION_BINS.quantization_tier[bins[3]!]!,
    prefill_decode_split: SERVE_ACTION_BINS.prefill_decode_split[bins[4]!]!,
    priority_routing: SERVE_ACTION_BINS.priority_routing[bins[5]!]!,
  };
}

/** The bins nearest to an action; by ratio for `batch_cap` and `kv_budget_fraction`. */
export function encodeServeAction(action: ServeAction): number[] {
  return [
    nearest(SERVE_ACTION_BINS.batch_cap.map(Math.log), Math.log(action.batch_cap)),
    nearest(SERVE_ACTION_BINS.kv_budget_fraction.map(Math.log), Math.log(action.kv_budget_fraction)),
    nearest(SERVE_ACTION_BINS.speculation_depth, action.speculation_depth),
    (SERVE_ACTION_BINS.quantization_tier as readonly QuantizationTier[]).indexOf(action.quantization_tier),
    action.prefill_decode_split ? 1 : 0,
    action.priority_routing ? 1 : 0,
  ];
}

function nearest(bins: readonly number[], value: number): number {
  let best = 0;
  for (let bin = 1; bin < bins.length; bin++) {
    if (Math.abs(bins[bin]! - value) < Math.abs(bins[best]! - value)) best = bin;
  }
  return best;
}
