import {
  type Caller,
  EnvironmentError,
  type OpenEnvServer,
  type ResetOptions,
  type Session,
  Turn,
} from '@servegym/openenv';
import { z } from 'zod';
import { asAnswers, type PolicyCatalogue, type ServedPolicy } from './open-environment.ts';
import { described, jsonObject, unknownName } from './routes.ts';

const policyStepRequest = z
  .strictObject({
    session_id: z
      .string()
      .max(255)
      .nullish()
      .describe("The session to play; without one, the caller's latest"),
    steps: z.int().min(1).max(200).default(1).describe('Windows to play'),
  })
  .meta({ title: 'PolicyStepRequest', examples: [{ steps: 10 }] });

const playedWindow = z.object({
  action: jsonObject,
  observation: jsonObject,
  reward: z.number().nullable(),
  done: z.boolean(),
  metadata: jsonObject.optional(),
  explanation: jsonObject.optional().describe('Why the policy chose the action, where it can tell'),
});

/**
 * `GET /policies` lists the policies of this server; `POST /policies/{name}/step` lets one of them play a session of
 * HTTP or WebSocket for some windows.
 */
export function mountPolicyRoutes(server: OpenEnvServer, catalogue: PolicyCatalogue): void {
  const { definition, requestSessions } = server;
  const play = policyPlayer(definition, catalogue);

  server.addRoute(
    {
      ...described('list_policies_get'),
      answer: z.array(z.object({ name: z.string(), title: z.string(), description: z.string() })),
    },
    () => catalogue.list(),
  );

  server.addRoute(
    {
      ...described('play_policy_post'),
      body: policyStepRequest,
      answer: z.object({ steps: z.array(playedWindow), done: z.boolean() }),
    },
    async (context, { parameters: { name }, body: { session_id, steps } }) => {
      const session = await requestSessions.of(context, session_id);
      if (!session) throw new EnvironmentError('NOT_RESET', 'You have no session yet. POST /reset first.');
      const played = await play(session, name, steps, requestSessions.caller(context));
      return { steps: played, done: played.at(-1)?.done === true };
    },
  );
}

/** A policy at work in an episode, and how many of its windows it has seen. */
interface EngagedPolicy {
  readonly policy: ServedPolicy;
  seen: number;
}

function policyPlayer(definition: OpenEnvServer['definition'], catalogue: PolicyCatalogue) {
  /** The policies at work in the current episode of each session, so that each remembers what it saw. */
  const engagements = new WeakMap<
    Session,
    { readonly episode: ResetOptions; readonly policies: Map<string, EngagedPolicy> }
  >();
  return play;

  /**
   * Lets a policy play the next windows of a session; fewer when the episode ends before. Stops when the caller has left.
   * @throws HTTPException 404 for an unknown policy.
   * @throws EnvironmentError `NOT_RESET` without an episode, `EPISODE_OVER` after its end.
   */
  async function play(session: Session, name: string, windows: number, caller: Caller) {
    const known = catalogue.list().map((policy) => policy.name);
    if (!known.includes(name)) throw unknownName('policy', name, known);
    const { record, lastResult } = session;
    if (!record || !lastResult)
      throw new EnvironmentError(
        'NOT_RESET',
        'The session has no episode yet. Reset it before a policy plays.',
      );
    if (lastResult.done)
      throw new EnvironmentError('EPISODE_OVER', 'The episode is over. Reset the session to start another.');
    const engaged = engage(session, record.reset, name);
    await showWhatWasPlayed(session, engaged, caller);
    const { policy } = engaged;
    const played = [];
    let { observation, reward } = session.lastResult!;
    let previousAction = record.actions.at(-1) ?? catalogue.initialAction(record.reset);
    const turn = new Turn(caller.name);
    while (played.length < windows) {
      caller.signal.throwIfAborted();
      if (turn.isOver) await turn.next();
      const step = { observation, reward, previousAction, stepIndex: session.stepCount };
      const action = await asAnswers(() => policy.act(step, caller));
      const explanation = policy.explain?.();
      const result = await session.step(action);
      engaged.seen = session.stepCount;
      played.push({ action, ...result, explanation });
      if (result.done) break;
      ({ observation, reward } = result);
      previousAction = action;
    }
    return played;
  }

  /** The same policy for as long as the episode lasts. */
  function engage(session: Session, episode: ResetOptions, name: string) {
    let engagement = engagements.get(session);
    if (engagement?.episode !== episode) {
      engagement = { episode, policies: new Map() };
      engagements.set(session, engagement);
    }
    let engaged = engagement.policies.get(name);
    if (!engaged) {
      engaged = { policy: catalogue.create(name), seen: 0 };
      const { task_id, seed = 0, episode_id, ...resetOptions } = episode;
      const taskId = typeof task_id === 'number' ? task_id : String(task_id ?? '');
      engaged.policy.reset({ taskId, seed, resetOptions });
      engagement.policies.set(name, engaged);
    }
    return engaged;
  }

  /**
   * A policy that comes in late, comes back after a person's turn or after a restart of the server, sees the windows
   * that it has missed, so that it knows what it would know had it watched from the start.
   */
  async function showWhatWasPlayed(session: Session, engaged: EngagedPolicy, caller: Caller): Promise<void> {
    const { record } = session;
    const { policy, seen } = engaged;
    if (!record || record.actions.length <= seen) return;
    const environment = definition.create();
    const turn = new Turn(caller.name);
    try {
      await turn.next();
      let { observation, reward } = await environment.reset(record.reset);
      let previousAction = catalogue.initialAction(record.reset);
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
}
