import { createHash } from 'node:crypto';
import { findProfile } from '@servegym/profiles';
import type { ServeAction } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { SERVE_TASKS } from '../task-registry.ts';
import type { ServeTask } from '../tasks/serve-task.ts';
import recorded from './reference-returns.json' with { type: 'json' };

/** Recorded returns of a task, made by `servegym oracle`. */
export interface TaskReference {
  /** Under which these were computed; see `taskFingerprint`. */
  readonly fingerprint: string;
  /** The configuration that earned most on the training traffic when it never changed. */
  readonly constant: ServeAction;
  /** The one that earned most when all traffic was of one phase, by name of the phase. */
  readonly phases: Readonly<Record<string, ServeAction>>;
  readonly seeds: Readonly<Record<string, SeedReturns>>;
}

/** Returns on the traffic of one seed. */
export interface SeedReturns {
  readonly default: number;
  readonly constant: number;
  /** Of the receding-horizon planner, which does not know the traffic to come; absent where it was not played. */
  readonly planner?: number;
  /** Of the planner that does. */
  readonly clairvoyant: number;
}

/** File of the records; `maintenance/rebuild-references.ts` writes it. */
export const REFERENCE_RETURNS_URL = new URL('./reference-returns.json', import.meta.url);

const RECORDED = recorded as unknown as Readonly<Record<string, TaskReference>>;

/** Record of the task with this id, which may hold no longer; `undefined` for a task that does not come with ServeGym. */
export function recordedReference(taskId: string): TaskReference | undefined {
  return Object.hasOwn(RECORDED, taskId) ? RECORDED[taskId] : undefined;
}

/** True for a task that comes with ServeGym and was not changed for a shift or other traffic. */
export function isRecordedTask(task: ServeTask): boolean {
  return Object.hasOwn(SERVE_TASKS, task.id) && SERVE_TASKS[task.id as never] === task;
}

/** Returns of this very task on the traffic of `seed`; `undefined` when none are recorded, or they no longer hold. */
export function recordedReturns(task: ServeTask, seed: number): SeedReturns | undefined {
  const reference = recordedReference(task.id);
  if (reference === undefined || !isRecordedTask(task)) return undefined;
  const returns = Object.hasOwn(reference.seeds, seed) ? reference.seeds[seed] : undefined;
  return returns !== undefined && reference.fingerprint === taskFingerprint(task) ? returns : undefined;
}

/** Configurations that are worth trying in a task, the best constant first; the default alone where nothing is recorded. */
export function referenceConfigurations(task: ServeTask): ServeAction[] {
  const reference = recordedReference(task.id);
  if (reference === undefined) return [task.defaultAction];
  return [reference.constant, ...Object.values(reference.phases), task.defaultAction];
}

/**
 * Knobs of the first windows of the episode that is played for a fingerprint: what is costly to get right is in them. The
 * others, which bring the other phases, are played with the default.
 */
const PLAYED: readonly Partial<ServeAction>[] = [
  {},
  { batch_cap: 96, kv_budget_fraction: 0.3 },
  { speculation_depth: 3 },
  { speculation_depth: 6, priority_routing: true },
  { quantization_tier: 'INT8', speculation_depth: 2 },
  { quantization_tier: 'INT8', kv_budget_fraction: 0.1, batch_cap: 128 },
  { quantization_tier: 'INT8', prefill_decode_split: true },
  { quantization_tier: 'INT8', prefill_decode_split: true, kv_budget_fraction: 0.2 },
  { quantization_tier: 'INT4', speculation_depth: 1 },
  { quantization_tier: 'INT4', kv_budget_fraction: 1, priority_routing: true },
];

/** Of the episode that is played for a fingerprint. */
export const FINGERPRINT_SEED = 0;

const KNOWN = new WeakMap<ServeTask, string>();

/**
 * Stands for all that a return depends on: the task, its profile, and how the simulator plays an episode of it, to the
 * last bit. Returns that were computed under another fingerprint are not comparable.
 */
export function taskFingerprint(task: ServeTask): string {
  const known = KNOWN.get(task);
  if (known !== undefined) return known;
  const { name: _, description: __, ...rest } = task;
  const hash = createHash('sha256').update(JSON.stringify([rest, findProfile(task.profile)]));
  const episode = new ServeEpisode(task, FINGERPRINT_SEED);
  while (!episode.done) {
    const reward = episode.step({ ...task.defaultAction, ...PLAYED[episode.window] });
    // The description of the server follows from the profile, and no return depends on it.
    const { server: _, ...seen } = episode.observation();
    hash.update(JSON.stringify([reward, seen]));
  }
  const fingerprint = hash.digest('hex').slice(0, 16);
  KNOWN.set(task, fingerprint);
  return fingerprint;
}
