import { llmserve, type ServeAction, serveActionSchema } from '@servegym/environments';
import type { TrainingNote } from '../../learning/learning-task.ts';
import { findTrainedTask, trainedTask } from '../trained-task.ts';
import type { RegimeCenter } from './regime-tracker.ts';
import { requireThisEnvironment, TrainedPolicyError } from './trained-policy-error.ts';

/** A configuration for each regime of traffic. */
export interface RegimeTable {
  readonly taskId: string;
  /** One or more. */
  readonly regimes: readonly { readonly center: RegimeCenter; readonly action: ServeAction }[];
  /** How it came to be, for people. */
  readonly training: TrainingNote;
}

/** A JSON file that says which environment, version and task the regimes are for. */
export function encodeRegimeTable({ taskId, regimes, training }: RegimeTable): string {
  const { id: environment, version } = llmserve;
  return `${JSON.stringify({ environment, version, ...trainedTask(taskId), regimes, training }, null, 2)}\n`;
}

/** What `encodeRegimeTable` wrote, parsed as JSON. @throws TrainedPolicyError */
export function readRegimeTable(json: Readonly<Record<string, unknown>>): RegimeTable {
  requireThisEnvironment(json.environment, json.version);
  const { id: taskId } = findTrainedTask({ task: json.task, task_digest: json.task_digest });
  const regimes = Array.isArray(json.regimes) ? json.regimes.map(readRegime) : [];
  if (regimes.length === 0) throw new TrainedPolicyError('Expected at least one regime, got none');
  return { taskId, regimes, training: (json.training ?? {}) as TrainingNote };
}

function readRegime(regime: unknown): RegimeTable['regimes'][number] {
  const { center, action } = (regime ?? {}) as Partial<RegimeTable['regimes'][number]>;
  const checked = serveActionSchema.safeParse(action);
  if (!Number.isFinite(center?.arrivals) || !Number.isFinite(center?.prompts) || !checked.success) {
    throw new TrainedPolicyError(
      `Expected a regime to have a center and an action, got ${JSON.stringify(regime).slice(0, 200)}`,
    );
  }
  return { center: center!, action: checked.data };
}
