import { type PlayableEnvironment, type Policy, playEpisode } from '@servegym/agents';

/** A window of an episode, flat: the columns of a dataset. */
export type DatasetRow = Readonly<Record<string, DatasetValue>>;
export type DatasetValue = number | string | boolean | null;

/** Episodes to record. */
export interface RecordingPlan<Action> {
  readonly taskId: string | number;
  readonly seeds: readonly number[];
  /** The configuration that `reset` applies. */
  readonly initialAction: Action;
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
  { taskId, seeds, initialAction, onEpisode }: RecordingPlan<Action>,
): Promise<DatasetRow[]> {
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
    await playEpisode(environment, recorded, { taskId, seed, initialAction }, (window) => {
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
  return rows;
}

/** The figures, texts and flags of an object, also of objects in it, by their path. Lists are left out. */
function flat(prefix: string, value: object): Record<string, DatasetValue> {
  const columns: Record<string, DatasetValue> = {};
  for (const [name, inner] of Object.entries(value)) {
    const path = `${prefix}.${name}`;
    if (inner === null || ['number', 'string', 'boolean'].includes(typeof inner)) columns[path] = inner;
    else if (typeof inner === 'object' && !Array.isArray(inner)) Object.assign(columns, flat(path, inner));
  }
  return columns;
}
