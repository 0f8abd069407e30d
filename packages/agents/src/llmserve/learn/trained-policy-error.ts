import { llmserve } from '@servegym/environments';

/** A trained policy that does not belong to this version of `llmserve`, or is none. The message says what differs. */
export class TrainedPolicyError extends Error {
  override readonly name = 'TrainedPolicyError';
  readonly isInputError = true;
}

/** @throws TrainedPolicyError when a policy was trained on another environment, or on another version of it */
export function requireThisEnvironment(environment: unknown, version: unknown): void {
  requireSame('environment', llmserve.id, environment);
  requireSame('version of llmserve', llmserve.version, version);
}

/** @throws TrainedPolicyError when `got` is not `expected` */
export function requireSame(what: string, expected: string, got: unknown): void {
  if (got === expected) return;
  throw new TrainedPolicyError(`Expected a policy for the ${what} ${expected}, got ${got}: train it anew`);
}
