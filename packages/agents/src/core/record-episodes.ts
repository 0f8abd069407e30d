import { playEpisode } from './play-episode.ts';
import type { PlayableEnvironment } from './playable-environment.ts';
import type { Policy } from './policy.ts';

/** A window of an episode, flat: the columns of a dataset. */
export type DatasetRow = Readonly<Record<string, DatasetValue>>;
type DatasetValue = number | string | boolean | null | readonly object[];

/** Lists of what came and went in a window, or was there at its end, as many as there were. */
const LOGS: ReadonlySet<string> = new Set(['info.events', 'info.replicas']);

/** Episodes to record. */
export interface RecordingPlan {
  readonly taskId: string | number;
  readonly seeds: readonly number[];
  /** Called after each episode. */
  readonly onEpisode?: (finished: number) => void;
}

/**
 * Plays episodes, and puts down each window: what was seen, what was done and what came of it. The columns are those of
 * Minari and D4RL, one row a step. All our episodes end by a time limit, so the last row of each is truncated.
 */
export async function recordEpisodes<Action extends object, Observation extends object>(
  environment: PlayableEnvironment<Action, Observation>,
  policy: Policy<Action, Observation>,
  { taskId, seeds, onEpisode }: RecordingPlan,
): Promise<DatasetRow[]> {
  const instance = environment.create();
  const initialAction = environment.initialAction(taskId);
  const rows: DatasetRow[] = [];
  for (const [episode, seed] of seeds.entries()) {
    const firstRow = rows.length;
    let seen: Observation;
    let done: Action;
    const recorded: Policy<Action, Observation> = {
      name: policy.name,
      reset: (of) => policy.reset(of),
      act(step) {
        seen = step.observation;
        done = policy.act(step);
        return done;
      },
    };
    await playEpisode(instance, recorded, { taskId, seed, initialAction }, (window) => {
      rows.push({
        episode_id: episode,
        step: rows.length - firstRow,
        seed,
        ...flat('observation', seen),
        ...flat('action', done),
        reward: window.reward,
        terminated: false,
        truncated: false,
        ...flat('next_observation', window.observation),
        ...flat('info', window.metadata ?? {}),
      });
    });
    rows.push({ ...rows.pop()!, truncated: true });
    onEpisode?.(episode + 1);
  }
  await instance.close?.();
  return rows;
}

/**
 * The figures, texts and flags in an object and in what it holds, by their path. An entry of a list goes by its `name`,
 * where it has one, or by its place.
 */
function flat(path: string, value: unknown): Record<string, DatasetValue> {
  if (typeof value !== 'object' || value === null) return { [path]: value as DatasetValue };
  if (LOGS.has(path)) return { [path]: value as readonly object[] };
  const columns: Record<string, DatasetValue> = {};
  for (const [key, inner] of Object.entries(value)) {
    const { name, ...rest } = Array.isArray(value) ? (Object(inner) as { readonly name?: string }) : {};
    Object.assign(
      columns,
      name === undefined ? flat(`${path}.${key}`, inner) : flat(`${path}.${name}`, rest),
    );
  }
  return columns;
}
