import { adversarialMultiTenant } from './adversarial-multi-tenant.ts';
import { burstyShareGpt } from './bursty-sharegpt.ts';
import type { GymTask, GymTaskId } from './gym-task.ts';
import { staticUniform } from './static-uniform.ts';

/** The tasks by their ids. */
export const GYM_TASKS: Readonly<Record<GymTaskId, GymTask>> = {
  1: staticUniform,
  2: burstyShareGpt,
  3: adversarialMultiTenant,
};
