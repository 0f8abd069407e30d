import { PRIORITY_CLASSES } from '../engine/waiting-queue.ts';
import { RandomStream } from '../random/counter-random.ts';
import { SimulatorError } from '../simulator-error.ts';

/**
 * A priority class for each of `count` requests, drawn in proportion to `shares`, of which the first is that of the most
 * urgent class. Shares need not add up to 1.
 * @throws SimulatorError for more shares than there are classes, or shares that are none.
 */
export function drawPriorities(count: number, shares: readonly number[], seed: number): Uint8Array {
  if (shares.length === 0 || shares.length > PRIORITY_CLASSES) {
    throw new SimulatorError(
      'SIMULATION_OPTION',
      `Expected shares of 1 to ${PRIORITY_CLASSES} priority classes, got ${shares.length}`,
    );
  }
  if (
    !shares.every((share) => share >= 0 && share < Number.POSITIVE_INFINITY) ||
    !shares.some((share) => share > 0)
  ) {
    throw new SimulatorError(
      'SIMULATION_OPTION',
      `Expected shares of priority classes to be 0 or more, one of them above 0, got ${shares.join(', ')}`,
    );
  }
  const random = new RandomStream(seed, 'priorities');
  return Uint8Array.from({ length: count }, () => random.choose(shares));
}
