import { createPolicy, listPolicies, type ServePolicy } from '@servegym/agents';
import {
  SERVE_TASKS,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  type TaskId,
} from '@servegym/environments';
import { EnvironmentError, HttpProblem, type ResetOptions, type Session } from '@servegym/openenv';

export type ServeSession = Session<ServeAction, ServeObservation, ServeState>;

/** A window that a policy has played. */
export interface PlayedWindow {
  readonly action: ServeAction;
  readonly observation: ServeObservation;
  readonly reward: number | null;
  readonly done: boolean;
  readonly metadata?: Record<string, unknown>;
}

/** The policies at work in the current episode of a session. */
interface Engagement {
  readonly episode: ResetOptions;
  readonly policies: Map<string, ServePolicy>;
}

/** Plays sessions with the policies that live in this process, and keeps the memory of each to its own session. */
export class PolicyPlayer {
  readonly #engagements = new WeakMap<ServeSession, Engagement>();

  /**
   * Lets a policy play the next windows of a session; fewer when the episode ends before.
   * @throws HttpProblem 404 for an unknown policy.
   * @throws EnvironmentError `NOT_RESET` without an episode, `EPISODE_OVER` after its end.
   */
  async play(session: ServeSession, policyName: string, windows: number): Promise<PlayedWindow[]> {
    requireKnown(policyName);
    const { record, lastResult } = session;
    if (!record || !lastResult) {
      throw new EnvironmentError(
        'NOT_RESET',
        'The session has no episode yet. Reset it before a policy plays.',
      );
    }
    if (lastResult.done) {
      throw new EnvironmentError('EPISODE_OVER', 'The episode is over. Reset the session to start another.');
    }
    let { observation } = lastResult;
    const taskId = observation.task_id;
    const policy = this.#policyOf(session, record.reset, policyName, taskId);
    const played: PlayedWindow[] = [];
    let previousAction = record.actions.at(-1) ?? SERVE_TASKS[taskId].defaultAction;
    while (played.length < windows) {
      const action = policy.act({ observation, previousAction, stepIndex: session.stepCount });
      const result = await session.step(action);
      played.push({ action, ...result });
      if (result.done) break;
      observation = result.observation;
      previousAction = action;
    }
    return played;
  }

  /** The same policy for as long as the episode lasts, so that it remembers what it saw. */
  #policyOf(session: ServeSession, episode: ResetOptions, name: string, taskId: TaskId): ServePolicy {
    let engagement = this.#engagements.get(session);
    if (engagement?.episode !== episode) {
      engagement = { episode, policies: new Map() };
      this.#engagements.set(session, engagement);
    }
    const engaged = engagement.policies.get(name);
    if (engaged) return engaged;
    const policy = createPolicy(name);
    policy.reset({ taskId, seed: episode.seed ?? 0 });
    engagement.policies.set(name, policy);
    return policy;
  }
}

function requireKnown(name: string): void {
  const known = listPolicies().map((policy) => policy.name);
  if (known.includes(name)) return;
  throw new HttpProblem(
    404,
    `Unknown policy: ${name.slice(0, 100)}. There are ${known.join(', ')}.`,
    'UNKNOWN_POLICY',
  );
}
