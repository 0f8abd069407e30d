import {
  FLEET_TASK_IDS,
  type FleetTaskId,
  fleetActionSchema,
  fleetEnvironment,
} from '@servegym/environments';
import { z } from 'zod';
import { AgentError, requireSame } from '../../error-catalogue.ts';
import type { TrainingNote } from '../../learning/learning-environment.ts';
import type { SurgeParameters } from '../policies/surge-policy.ts';

/** A `SurgePolicy` that was trained on a task of `fleet`. */
export interface TrainedSurge {
  readonly taskId: FleetTaskId;
  readonly parameters: SurgeParameters;
  /** Origin, for people. */
  readonly training: TrainingNote;
}

const number = z.number().min(-1e9).max(1e9);
const { admission_seconds, max_num_batched_tokens } = fleetActionSchema.shape;
const settings = z.object({
  decay: z.number().min(0).max(1),
  headroom: z.number().min(-1).max(100),
  admissionSeconds: admission_seconds,
  tokenBudget: max_num_batched_tokens,
});
const parameters = z.object({
  tokensPerReplica: z.number().positive().max(1e9),
  outputWeight: number,
  trend: number,
  backlog: number,
  behindBelow: number,
  prefixWeight: z.number().positive().max(1e9),
  calm: settings,
  behind: settings,
});

/** A JSON file that says which environment, version and task the parameters are for. */
export function encodeSurge({ taskId, parameters, training }: TrainedSurge): string {
  const { id: environment, version } = fleetEnvironment();
  return `${JSON.stringify({ environment, version, task: taskId, parameters, training }, null, 2)}\n`;
}

/**
 * Reads what `encodeSurge` wrote.
 * @throws AgentError `POLICY_FILE` when it is no such file, `POLICY_MISMATCH` or `POLICY_TASK` when the policy was trained on something
 *   else than this version of `fleet`
 */
export function decodeSurge(file: Uint8Array): TrainedSurge {
  const json = parse(file);
  const { id, version } = fleetEnvironment();
  requireSame('environment', id, json.environment);
  requireSame('version of fleet', version, json.version);
  const taskId = FLEET_TASK_IDS.find((known) => known === json.task);
  if (taskId === undefined) {
    const expected = `one of ${FLEET_TASK_IDS.join(', ')}`;
    throw new AgentError('POLICY_TASK', { expected, got: `one for ${json.task}` });
  }
  const read = parameters.safeParse(json.parameters);
  if (!read.success) {
    const problem = `Expected the parameters of a policy of fleet: ${z.prettifyError(read.error)}`;
    throw new AgentError('POLICY_FILE', { problem });
  }
  return { taskId, parameters: read.data, training: (json.training ?? {}) as TrainingNote };
}

function parse(file: Uint8Array): Record<string, unknown> {
  try {
    return { ...(JSON.parse(new TextDecoder().decode(file)) as object) };
  } catch {
    throw new AgentError('POLICY_FILE', { problem: 'Expected a policy in JSON' });
  }
}
