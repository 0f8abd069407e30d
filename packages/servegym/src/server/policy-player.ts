import type { AsyncPolicy } from '@servegym/agents';
import {
  type Caller,
  type EnvironmentDefinition,
  EnvironmentError,
  httpProblem,
  type ResetOptions,
  type Session,
  Turn,
} from '@servegym/openenv';
import { BackgroundPolicy } from './background/background-environment.ts';
import { chooseAction } from './llm-player.ts';
import type { PolicyCatalogue } from './policy-catalogue.ts';

/** A window that a policy has played. */
export interface PlayedWindow {
  readonly action: unknown;
  readonly observation: unknown;
  readonly reward: number | null;
  readonly done: boolean;
  readonly metadata?: Record<string, unknown>;
  /** Why the policy chose the action, where it can tell. */
  readonly explanation?: unknown;
}

/** The policies at work in the current episode of a session. */
interface Engagement {
  readonly episode: ResetOptions;
  readonly policies: Map<string, EngagedPolicy>;
}

/** A policy and how many windows of the episode it has seen. */
interface EngagedPolicy {
  readonly policy: AsyncPolicy<unknown, unknown>;
  seen: number;
}

/** Plays sessions with policies, and keeps the memory of each to its own session. */
export class PolicyPlayer {
  readonly #definition: EnvironmentDefinition;
  readonly #catalogue: PolicyCatalogue<unknown, unknown>;
  readonly #engagements = new WeakMap<Session, Engagement>();

  constructor(definition: EnvironmentDefinition, catalogue: PolicyCatalogue<unknown, unknown>) {
    this.#definition = definition;
    this.#catalogue = catalogue;
  }

  /**
   * Lets a policy play the next windows of a session; fewer when the episode ends before. Stops when the caller has left.
   * @throws HTTPException 404 for an unknown policy.
   * @throws EnvironmentError `NOT_RESET` without an episode, `EPISODE_OVER` after its end.
   */
  async play(session: Session, policyName: string, windows: number, caller: Caller): Promise<PlayedWindow[]> {
    this.#requireKnown(policyName);
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
    const engaged = await this.#engage(session, record.reset, policyName, caller);
    const { policy } = engaged;
    const played: PlayedWindow[] = [];
    let { observation, reward } = session.lastResult!;
    let previousAction = record.actions.at(-1) ?? this.#catalogue.initialAction(record.reset);
    const turn = new Turn(caller.name);
    while (played.length < windows) {
      caller.signal.throwIfAborted();
      if (turn.isOver) await turn.next();
      const step = { observation, reward, previousAction, stepIndex: session.stepCount };
      const action =
        policy instanceof BackgroundPolicy
          ? await policy.actFor(step, caller)
          : await chooseAction(policy, step);
      const explanation = policy.explain?.();
      const result = await session.step(action);
      engaged.seen = session.stepCount;
      played.push({ action, ...result, ...(explanation !== undefined && { explanation }) });
      if (result.done) break;
      ({ observation, reward } = result);
      previousAction = action;
    }
    return played;
  }

  /** The same policy for as long as the episode lasts, so that it remembers what it saw. */
  async #engage(
    session: Session,
    episode: ResetOptions,
    name: string,
    caller: Caller,
  ): Promise<EngagedPolicy> {
    let engagement = this.#engagements.get(session);
    if (engagement?.episode !== episode) {
      engagement = { episode, policies: new Map() };
      this.#engagements.set(session, engagement);
    }
    let engaged = engagement.policies.get(name);
    if (!engaged) {
      engaged = { policy: this.#catalogue.create(name), seen: 0 };
      const { task_id, seed = 0, episode_id, ...resetOptions } = episode;
      const taskId = typeof task_id === 'number' ? task_id : String(task_id ?? '');
      engaged.policy.reset({ taskId, seed, resetOptions });
      engagement.policies.set(name, engaged);
    }
    await this.#showWhatWasPlayed(session, engaged, caller);
    return engaged;
  }

  /**
   * A policy that comes in late, comes back after a person's turn or after a restart of the server, sees the windows
   * that it has missed, so that it knows what it would know had it watched from the start.
   */
  async #showWhatWasPlayed(session: Session, engaged: EngagedPolicy, caller: Caller): Promise<void> {
    const { record } = session;
    const { policy, seen } = engaged;
    if (!record || record.actions.length <= seen) return;
    const environment = this.#definition.create();
    const turn = new Turn(caller.name);
    try {
      await turn.next();
      let { observation, reward } = await environment.reset(record.reset);
      let previousAction = this.#catalogue.initialAction(record.reset);
      for (const [stepIndex, action] of record.actions.entries()) {
        if (turn.isOver) await turn.next();
        const step = { observation, reward, previousAction, stepIndex };
        if (stepIndex >= seen) {
          if (policy.watch) policy.watch(step, action);
          else await policy.act(step);
          engaged.seen = stepIndex + 1;
        }
        ({ observation, reward } = await environment.step(action));
        previousAction = action;
      }
    } finally {
      await environment.close?.();
    }
  }

  #requireKnown(name: string): void {
    const known = this.#catalogue.list().map((policy) => policy.name);
    if (known.includes(name)) return;
    throw httpProblem(
      404,
      `Unknown policy: ${name.slice(0, 100)}. There are ${known.join(', ')}.`,
      'UNKNOWN_POLICY',
    );
  }
}
