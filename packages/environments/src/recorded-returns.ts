import { createHash, type Hash } from 'node:crypto';
import type { WindowEpisode, WindowTask } from './window-environment.ts';

/** Returns on the requests of one seed: of the default policy, and of a planner that knows the requests. */
interface SeedReturns {
  readonly default: number;
  readonly clairvoyant: number;
}

/** What is recorded of a task. */
interface TaskRecord<Returns extends SeedReturns> {
  /** Under which these were computed; see `fingerprint`. */
  readonly fingerprint: string;
  readonly seeds: Readonly<Record<string, Returns>>;
}

interface RecordedParts<Task, Returns> {
  /** File of the records; `benchmarks/run.ts references` writes it. */
  readonly url: URL;
  readonly records: object;
  readonly shipped: Readonly<Record<string, Task>>;
  /** Puts all into a fingerprint that a return depends on: the task, its profile, and how the simulator plays it. */
  readonly print: (hash: Hash, task: Task) => void;
  /** Return of the tuned policy: the best constant configuration, or for `fleet` the tuned rule. */
  readonly tuned: (returns: Returns) => number;
  /** A return that no policy can exceed on the requests of a seed. */
  readonly bound: (task: Task, seed: number) => number;
  /** Recorded seeds that are looked at for `foresight`: their requests have to be drawn again for the bound. */
  readonly boundedSeeds: number;
  /** Room and foresight of a task of which nothing is recorded. */
  readonly unrecorded: number;
}

/** The recorded returns of the tasks that come with an environment. */
export function recordedReturns<
  Task extends { readonly id: string },
  Returns extends SeedReturns,
  Kept extends TaskRecord<Returns>,
>({ url, records, shipped, print, tuned, bound, boundedSeeds, unrecorded }: RecordedParts<Task, Returns>) {
  const fingerprints = new WeakMap<Task, string>();
  const foresights = new Map<string, number>();

  /** Record of the task with this id, which may hold no longer; `undefined` for a task that does not come with ServeGym. */
  function reference(taskId: string): Kept | undefined {
    const kept = records as Readonly<Record<string, Kept>>;
    return Object.hasOwn(kept, taskId) ? kept[taskId] : undefined;
  }

  /** True for a task that comes with ServeGym and was not changed for a shift or other requests. */
  function isRecorded(task: Task): boolean {
    return Object.hasOwn(shipped, task.id) && shipped[task.id] === task;
  }

  /** Returns of this very task on the requests of `seed`; `undefined` when none are recorded, or they no longer hold. */
  function returns(task: Task, seed: number): Returns | undefined {
    const kept = reference(task.id);
    if (kept === undefined || !isRecorded(task)) return undefined;
    const ofSeed = Object.hasOwn(kept.seeds, seed) ? kept.seeds[seed] : undefined;
    return ofSeed !== undefined && kept.fingerprint === fingerprint(task) ? ofSeed : undefined;
  }

  /**
   * Stands for all that a return depends on, to the last bit. Returns that were computed under another fingerprint are not
   * comparable.
   */
  function fingerprint(task: Task): string {
    const known = fingerprints.get(task);
    if (known !== undefined) return known;
    const hash = createHash('sha256');
    print(hash, task);
    const made = hash.digest('hex').slice(0, 16);
    fingerprints.set(task, made);
    return made;
  }

  /**
   * Room of a task over its recorded seeds: what the clairvoyant gains over the tuned policy, as a share of what it gains
   * over the default.
   */
  function room(taskId: string): number {
    let overTuned = 0;
    let overDefault = 0;
    for (const ofSeed of Object.values(reference(taskId)?.seeds ?? {})) {
      overTuned += ofSeed.clairvoyant - tuned(ofSeed);
      overDefault += ofSeed.clairvoyant - ofSeed.default;
    }
    return overDefault > 0 ? overTuned / overDefault : unrecorded;
  }

  /**
   * Share of the way from the better of default and tuned policy to the bound that the clairvoyant covers over the first
   * recorded seeds of a task. Each task is measured once.
   */
  function foresight(taskId: string): number {
    const known = foresights.get(taskId) ?? measuredForesight(taskId) ?? unrecorded;
    foresights.set(taskId, known);
    return known;
  }

  function measuredForesight(taskId: string): number | undefined {
    if (!Object.hasOwn(shipped, taskId)) return undefined;
    let gained = 0;
    let possible = 0;
    const seeds = Object.entries(reference(taskId)?.seeds ?? {}).slice(0, boundedSeeds);
    for (const [seed, ofSeed] of seeds) {
      const best = Math.max(ofSeed.default, tuned(ofSeed));
      gained += ofSeed.clairvoyant - best;
      possible += bound(shipped[taskId], Number(seed)) - best;
    }
    return possible > 0 ? gained / possible : undefined;
  }

  return { url, reference, isRecorded, returns, fingerprint, room, foresight };
}

/** Seed of the episode that is played for a fingerprint. */
export const FINGERPRINT_SEED = 0;

/** Plays windows of an episode for a fingerprint; `changes` are those of the default settings, window by window. */
export function printPlay<Action extends object, Observation extends { readonly server: unknown }>(
  hash: Hash,
  episode: WindowEpisode<Action, Observation>,
  changes: readonly Partial<Action>[],
  windows = changes.length,
): void {
  const { defaultAction } = episode.task as WindowTask<Action>;
  for (let window = 0; window < windows; window++) {
    const reward = episode.step({ ...defaultAction, ...changes[window] });
    // The description of the server follows from the profile, and no return depends on it.
    const { server: _, ...seen } = episode.observation();
    hash.update(JSON.stringify([reward, seen]));
  }
}
