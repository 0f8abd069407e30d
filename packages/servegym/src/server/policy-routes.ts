import type { PolicyStep } from '@servegym/agents';
import {
  type Caller,
  describedBy,
  type EnvironmentDefinition,
  EnvironmentError,
  httpProblem,
  jsonValue,
  type OpenEnvServer,
  type ResetOptions,
  type Session,
  Turn,
} from '@servegym/openenv';
import { z } from 'zod';
import { asProblem, type PolicyCatalogue, type ServedPolicy } from './open-environment.ts';
import ROUTES from './routes.json' with { type: 'json' };

const described = describedBy(ROUTES);

const policyStepRequest = z
  .strictObject({
    session_id: z
      .string()
      .max(255)
      .nullish()
      .meta({ description: "The session to play; without one, the caller's latest" }),
    steps: z.int().min(1).max(200).default(1).meta({ description: 'Windows to play' }),
  })
  .meta({ title: 'PolicyStepRequest', examples: [{ steps: 10 }] });

const jsonObject = jsonValue<unknown>({ type: 'object' });

const playedWindow = z.object({
  action: jsonObject,
  observation: jsonObject,
  reward: z.number().nullable(),
  done: z.boolean(),
  metadata: jsonObject.optional(),
  explanation: jsonObject
    .optional()
    .meta({ description: 'Why the policy chose the action, where it can tell' }),
});

/**
 * `GET /policies` lists the policies of this server; `POST /policies/{name}/step` lets one of them play a session of
 * HTTP or WebSocket for some windows.
 */
export function mountPolicyRoutes(server: OpenEnvServer, catalogue: PolicyCatalogue): void {
  const player = policyPlayer(server.definition, catalogue);

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
      const session = await server.requestSessions.of(context, session_id);
      if (!session) throw new EnvironmentError('NOT_RESET', 'You have no session yet. POST /reset first.');
      const played = await player.play(session, name, steps, server.requestSessions.caller(context));
      return { steps: played, done: played.at(-1)?.done === true };
    },
  );
}

/** A policy at work in an episode, and how many of its windows it has seen. */
interface EngagedPolicy {
  readonly policy: ServedPolicy;
  seen: number;
}

/** Plays sessions with policies, and keeps the memory of each to its own session. */
function policyPlayer(definition: EnvironmentDefinition, catalogue: PolicyCatalogue) {
  /** The policies at work in the current episode of each session. */
  const engagements = new WeakMap<
    Session,
    { readonly episode: ResetOptions; readonly policies: Map<string, EngagedPolicy> }
  >();
  return { play };

  /**
   * Lets a policy play the next windows of a session; fewer when the episode ends before. Stops when the caller has left.
   * @throws HTTPException 404 for an unknown policy.
   * @throws EnvironmentError `NOT_RESET` without an episode, `EPISODE_OVER` after its end.
   */
  async function play(session: Session, name: string, windows: number, caller: Caller) {
    requireKnown(name, catalogue);
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
      const action = await chosen(policy, step, caller);
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

  /** The same policy for as long as the episode lasts, so that it remembers what it saw. */
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

function requireKnown(name: string, catalogue: PolicyCatalogue): void {
  const known = catalogue.list().map((policy) => policy.name);
  if (known.includes(name)) return;
  throw httpProblem(
    404,
    `Unknown policy: ${name.slice(0, 100)}. There are ${known.join(', ')}.`,
    'UNKNOWN_POLICY',
  );
}

/** The action of a policy; what is wrong with its model becomes an answer of the server. */
async function chosen(
  policy: ServedPolicy,
  step: PolicyStep<unknown, unknown>,
  caller: Caller,
): Promise<unknown> {
  try {
    return await policy.act(step, caller);
  } catch (error) {
    throw asProblem(error);
  }
}
