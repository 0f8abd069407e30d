import { ApiError } from './api-error.ts';
import type { Fields, Outcome, PlayedStep } from './wire.ts';

/** Reads the answer to a reset or a step. @throws ApiError `unreadable` */
export function outcome(answer: Fields, path: string): Outcome {
  const { observation, reward, done, metadata } = answer ?? {};
  if (typeof observation !== 'object' || observation === null) throw unreadable(path);
  return {
    observation: observation as Fields,
    reward: typeof reward === 'number' ? reward : null,
    done: done === true,
    metadata: (metadata ?? (observation as Fields).metadata ?? {}) as Fields,
  };
}

/** Reads a step that comes with its action. @throws ApiError `unreadable` */
export function playedStep(answer: Fields, path: string): PlayedStep {
  const { action, explanation } = answer;
  return {
    action: (action ?? {}) as Fields,
    ...outcome(answer, path),
    ...(typeof explanation === 'object' && explanation !== null && { explanation: explanation as Fields }),
  };
}

export function unreadable(path: string): ApiError {
  return new ApiError(
    'unreadable',
    200,
    `The answer to /${path} is not what this page expects. Is it a ServeGym server of this version?`,
  );
}
