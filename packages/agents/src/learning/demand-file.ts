import { type FleetTaskId, fleet } from '@servegym/environments';
import { z } from 'zod';
import { AgentError } from '../error-catalogue.ts';
import type { TrainingNote } from './learning-environment.ts';
import type { DemandParameters } from '../policies/demand-policy.ts';
import { trainedFleetTask } from './fleet-learning-task.ts';

/** A `DemandPolicy` that was trained on a task of `fleet`. */
export interface TrainedDemand {
  readonly taskId: FleetTaskId;
  readonly parameters: DemandParameters;
  /** Origin, for people. */
  readonly training: TrainingNote;
}

const positive = z.number().positive().max(1e9);
const parameters = z.object({
  tokensPerReplica: positive,
  outputWeight: z.number().min(0).max(1e9),
  decay: z.number().min(0).max(1),
  surge: z.number().min(0).max(1e9),
  spareReplicas: z.number().min(-100).max(100),
  backlog: z.number().min(0).max(1e9),
  admissionSeconds: z.number().min(0).max(1e9),
  prefixWeight: positive,
  tokenBudget: positive,
});

/** A JSON file that says which environment, version and task the parameters are for. */
export function encodeDemand({ taskId, parameters, training }: TrainedDemand): string {
  const { id: environment, version } = fleet.definition();
  return `${JSON.stringify({ environment, version, task: taskId, parameters, training }, null, 2)}\n`;
}

/**
 * Reads what `encodeDemand` wrote.
 * @throws AgentError `POLICY_FILE` when it is no such file, `POLICY_MISMATCH` or `POLICY_TASK` when the policy was trained on something
 *   else than this version of `fleet`
 */
export function decodeDemand(file: Uint8Array): TrainedDemand {
  const json = parse(file);
  const taskId = trainedFleetTask(json);
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
