import type { EngineProfile } from '@servegym/simulator';
import { QUANTIZATION_TIERS } from './schema.ts';
import type { ServeTask } from './tasks/serve-task.ts';

/** Whether a task can be played on a profile: it has weights of every precision and the acceptance tables that the task needs. */
export function profileFits(profile: EngineProfile, task: ServeTask): boolean {
  const tables = profile.speculation?.survival;
  return (
    QUANTIZATION_TIERS.every((tier) => profile.weights[tier] !== undefined) &&
    [task.acceptance, ...task.phases.map((phase) => phase.acceptance ?? task.acceptance)].every(
      (table) => tables?.[table] !== undefined,
    )
  );
}
