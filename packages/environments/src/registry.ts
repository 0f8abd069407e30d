import { benchmark } from './benchmark/environment.ts';
import { fleet } from './fleet/environment.ts';
import { inferencegym } from './inferencegym/environment.ts';
import { llmserve } from './llmserve/llmserve.ts';
import type { RegisteredEnvironment } from './registered-environment.ts';

/** The environments that come with ServeGym. A new one is one entry more. */
export const ENVIRONMENTS = { llmserve, fleet, inferencegym, benchmark } as const;

export type EnvironmentId = keyof typeof ENVIRONMENTS;
export const ENVIRONMENT_IDS = Object.keys(ENVIRONMENTS) as unknown as readonly [
  EnvironmentId,
  ...EnvironmentId[],
];

/** The environment of this id, for those who ask nothing that one alone has; `undefined` when there is none. */
export function findEnvironment(id: string): RegisteredEnvironment | undefined {
  const known = ENVIRONMENTS as unknown as Readonly<Record<string, RegisteredEnvironment>>;
  return Object.hasOwn(known, id) ? known[id] : undefined;
}
