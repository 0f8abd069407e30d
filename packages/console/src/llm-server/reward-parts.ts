import type { Task } from '../api/wire.ts';
import type { Frame } from '../state/frame.ts';

/** inferencegym tells the terms of its reward before their weights, which are those of the task. */
const WEIGHT_OF: Readonly<Record<string, readonly [weight: string, sign: 1 | -1]>> = {
  throughput: ['alpha', 1],
  latency: ['beta', -1],
  violations: ['gamma', -1],
  cost: ['delta', -1],
};
/** Sums of a few numbers differ by less than this when they are the same. */
const ROUNDING = 1e-6;

/** The signed parts that add up to a window's reward; none where the server does not tell them. */
export function rewardParts({ telemetry, reward }: Frame, task: Task | undefined): Record<string, number> {
  const weights = task?.reward_weights as Record<string, unknown> | undefined;
  const parts = Object.entries(telemetry.rewardParts).map(([name, part]): [string, number] => {
    const [weight, sign] = WEIGHT_OF[name] ?? [];
    const factor = weight !== undefined && weights ? weights[weight] : undefined;
    return [name, typeof factor === 'number' ? sign! * factor * part : part];
  });
  const sum = parts.reduce((total, [, part]) => total + part, 0);
  // Rewards are held within -1 and 1. Parts of a reward with other weights would tell a false story.
  const isWhole = Math.abs(Math.max(-1, Math.min(1, sum)) - (reward ?? sum)) < ROUNDING;
  return isWhole ? Object.fromEntries(parts) : {};
}
