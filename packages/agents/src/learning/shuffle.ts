import type { RandomStream } from '@servegym/simulator';

/** Brings the numbers into an order drawn uniformly, in place. Fisher and Yates. */
export function shuffle(order: Int32Array, random: RandomStream): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    const swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}
