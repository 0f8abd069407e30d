import { createHash } from 'node:crypto';
import { findProfile } from '@servegym/simulator';
import type { ServeAction } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import type { ServeTask } from '../tasks/serve-task.ts';

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
    hash.update(JSON.stringify([reward, episode.observation()]));
  }
  const fingerprint = hash.digest('hex').slice(0, 16);
  KNOWN.set(task, fingerprint);
  return fingerprint;
}
