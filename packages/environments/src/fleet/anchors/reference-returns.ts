import { createHash } from 'node:crypto';
import { FleetEpisode } from '../fleet-episode.ts';
import type { FleetAction } from '../schema.ts';
import { FLEET_TASKS } from '../task-registry.ts';
import type { FleetTask } from '../tasks/fleet-task.ts';
import type { RateRuleParameters } from './rate-rule.ts';
import recorded from './reference-returns.json' with { type: 'json' };

/** Recorded returns of a task. */
export interface FleetTaskReference {
  /** Under which these were computed; see `fleetTaskFingerprint`. */
  readonly fingerprint: string;
  /** The parameters of the rule that earned most on the training seeds. */
  readonly rule: RateRuleParameters;
  /** The same of `hpa`: requests in flight a replica. */
  readonly inFlightTarget: number;
  /** The same of `static`. */
  readonly constantReplicas: number;
  readonly seeds: Readonly<Record<string, FleetSeedReturns>>;
}

/** Returns on the requests of one seed. */
export interface FleetSeedReturns {
  /** Of the HorizontalPodAutoscaler. */
  readonly default: number;
  readonly rule: number;
  /** Of a planner that knows the requests. */
  readonly clairvoyant: number;
}

/** File of the records; `maintenance/rebuild-references.ts` writes it. */
export const FLEET_REFERENCE_RETURNS_URL = new URL('./reference-returns.json', import.meta.url);

const RECORDED = recorded as unknown as Readonly<Record<string, FleetTaskReference>>;

/** Record of the task with this id, which may hold no longer; `undefined` for a task that does not come with ServeGym. */
export function recordedFleetReference(taskId: string): FleetTaskReference | undefined {
  return Object.hasOwn(RECORDED, taskId) ? RECORDED[taskId] : undefined;
}

/** Returns of this very task on the requests of `seed`; `undefined` when none are recorded, or they no longer hold. */
export function recordedFleetReturns(task: FleetTask, seed: number): FleetSeedReturns | undefined {
  const reference = recordedFleetReference(task.id);
  if (reference === undefined || FLEET_TASKS[task.id as keyof typeof FLEET_TASKS] !== task) return undefined;
  const returns = Object.hasOwn(reference.seeds, seed) ? reference.seeds[seed] : undefined;
  return returns !== undefined && reference.fingerprint === fleetTaskFingerprint(task) ? returns : undefined;
}

/** Windows of the episode that is played for a fingerprint, and what they change of the default settings. */
const PLAYED: readonly Partial<FleetAction>[] = [
  {},
  { replicas: 6, max_num_batched_tokens: 1024 },
  { replicas: 5, routing_prefix: 1, routing_cache: 0.5 },
  { replicas: 2, max_num_active_seqs: 64 },
  { replicas: 6, prefill_replicas: 2, admission_seconds: 1 },
  { replicas: 6, prefill_replicas: 1, max_num_batched_tokens: 8192 },
  { replicas: 1, admission_seconds: 1 },
  {},
];

/** Of the episode that is played for a fingerprint. */
const FINGERPRINT_SEED = 0;

const KNOWN = new WeakMap<FleetTask, string>();

/**
 * Stands for all that a return depends on: the task, its profile, its requests, and how the simulator plays the first
 * windows of an episode of it, to the last bit. Returns that were computed under another fingerprint are not comparable.
 */
export function fleetTaskFingerprint(task: FleetTask): string {
  const known = KNOWN.get(task);
  if (known !== undefined) return known;
  const { name: _, description: __, ...rest } = task;
  const episode = new FleetEpisode(task, FINGERPRINT_SEED);
  // A replica starts in the seconds that the task says: the costs of a change of weights concern `llmserve` alone.
  const profiles = episode.profiles.map(({ reloadSeconds: _, hostCheckpoints: __, ...profile }) => profile);
  const hash = createHash('sha256').update(JSON.stringify([rest, profiles]));
  const { inputTokens, outputTokens, classes, startTicks, thinkTicks } = episode.requests;
  for (const column of [inputTokens, outputTokens, classes, startTicks, thinkTicks]) hash.update(column);
  for (const change of PLAYED) {
    const reward = episode.step({ ...task.defaultAction, ...change });
    // The description of the server follows from the profile, and no return depends on it.
    const { server: _, ...seen } = episode.observation();
    hash.update(JSON.stringify([reward, seen]));
  }
  const fingerprint = hash.digest('hex').slice(0, 16);
  KNOWN.set(task, fingerprint);
  return fingerprint;
}
