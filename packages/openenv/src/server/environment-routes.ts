import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { z } from 'zod';
import {
  type Caller,
  type EnvironmentDefinition,
  EnvironmentError,
  type StepResult,
} from '../protocol/definition.ts';
import { missingSession } from '../protocol/errors.ts';
import type { JsonSchema, StateBody } from '../protocol/messages.ts';
import { resetOptionsSchema } from '../protocol/reset-options.ts';
import { readAt, toJsonSchema } from '../protocol/schemas.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import type { ServerParts } from './create-server.ts';
import { guarded, RecentMap } from './guard.ts';
import { clientAddress, clientNetwork } from './request-origin.ts';
import { type AddRoute, described, jsonValue, sessionIdSchema } from './route-table.ts';

type AnswerFields = NonNullable<NonNullable<EnvironmentDefinition['httpFields']>['reset']>;

export const sessionId = sessionIdSchema("The session to act on; without one, the caller's latest");

/** `/reset`, `/step` and `/state`, which act on sessions. */
export function mountEnvironmentRoutes(
  addRoute: AddRoute,
  { definition, schemas, sessions, requestSessions, readAction, readResetOptions }: ServerParts,
): void {
  const { reset: resetFields, step: stepFields } = definition.httpFields ?? {};
  const resetBody = z.looseObject({
    ...describedOptions(definition),
    session_id: sessionIdSchema('The session to start again; without one, a new session is opened'),
  });
  const examples = [{ seed: 42, episode_id: 'episode-001' }, {}];
  addRoute(
    {
      ...described('reset_reset_post'),
      body: resetBody.meta({ ...describedOthers(definition), title: 'ResetRequest', examples }),
      answer: resultSchema(definition, resetFields),
    },
    async (context, { body: { session_id, ...asked } }) => {
      const options = readAt(['body'], () => readResetOptions(asked));
      const session = session_id
        ? await requestSessions.toReset(session_id)
        : sessions.open(requestSessions.caller(context).name);
      try {
        const result = await session.reset(options);
        requestSessions.remember(context, session);
        return answer(session, result, resetFields);
      } catch (error) {
        // A session that was opened for this request and never got an episode has no use.
        if (!session_id) await sessions.release(session.id);
        throw error;
      }
    },
  );
  const stepBody = z.looseObject({
    action: z.record(z.string(), z.unknown()).meta(schemas.action as z.GlobalMeta),
    session_id: sessionId,
    timeout_s: z
      .number()
      .gt(0)
      .nullish()
      .describe('Accepted for compatibility; a step always runs to its end'),
    request_id: z.string().max(255).nullish().describe('A label of the request'),
  });
  addRoute(
    {
      ...described('step_step_post'),
      body: stepBody.meta({ title: 'StepRequest' }),
      answer: resultSchema(definition, stepFields),
    },
    async (context, { body }) => {
      const action = readAction(body.action);
      const session = await requestSessions.of(context, body.session_id);
      if (!session) throw new EnvironmentError('NOT_RESET', 'You have no session yet. POST /reset first.');
      return answer(session, await session.step(action), stepFields);
    },
  );
  const description = "The session; without one, the caller's latest";
  addRoute(
    {
      ...described('endpoint_state_get'),
      query: z.object({ session_id: z.string().optional().meta({ description }) }),
      answer: jsonValue<StateBody>(schemas.state),
    },
    async (context, { query }) => {
      const session = await requestSessions.of(context, query.session_id);
      return session ? session.state() : { episode_id: null, step_count: 0 };
    },
  );
}

/** Whether a reset takes options that it does not name, in JSON Schema. The reader of the options refuses them. */
export function describedOthers(definition: EnvironmentDefinition): JsonSchema {
  const { additionalProperties } = toJsonSchema(resetOptionsSchema(definition), 'input');
  return additionalProperties === false ? { additionalProperties } : {};
}

/** The options of a reset, which a reader of their own checks. One that is null counts as absent. */
export function describedOptions(definition: EnvironmentDefinition): Readonly<Record<string, z.ZodType>> {
  const { properties = {} } = toJsonSchema(resetOptionsSchema(definition), 'input');
  return Object.fromEntries(
    Object.entries(properties).map(([name, { description, ...option }]) => [
      name,
      jsonValue<unknown>({ description, anyOf: [option, { type: 'null' }] }).optional(),
    ]),
  );
}

function resultSchema({ observation }: EnvironmentDefinition, fields?: AnswerFields) {
  return z.object({
    ...fields?.schema.shape,
    observation: jsonValue<object>(toJsonSchema(observation, 'output')),
    reward: z.number().nullable().describe('Reward of the action; null after a reset'),
    done: z.boolean().describe('Whether the episode is over'),
    session_id: z.string(),
    metadata: z.union([jsonValue<object>({ type: 'object' }), z.null()]),
  });
}

function answer({ id }: Session, result: StepResult, fields?: AnswerFields) {
  const { observation, reward, done, metadata = null } = result;
  return { ...fields?.of(result), observation, reward, done, session_id: id, metadata };
}

/** Callers that are remembered; the one that was longest away is forgotten first. */
export const MAX_CALLERS = 10_000;

export type RequestSessions = ReturnType<typeof requestSessionsOf>;

/** Finds the session that an HTTP request means. */
export function requestSessionsOf(sessions: SessionRegistry, trustedProxies: number) {
  /** The session that each caller reset last. */
  const latestOf = new RecentMap<string>(MAX_CALLERS);

  /** The id that a request names; `undefined` when it means the caller's latest session. */
  function named(context: Context, fromBody?: string | null): string | undefined {
    return fromBody || context.req.query('session_id') || context.req.header('x-session-id') || undefined;
  }

  return {
    named,

    /**
     * The named session: by the body's `session_id`, else the query's, else the `x-session-id` header. Without a name, the
     * session that the caller reset last; `undefined` when there is none.
     * @throws EnvironmentError `UNKNOWN_SESSION`, `SESSION_DELETED`, and what `SessionRegistry.resume` throws
     */
    async of(context: Context, fromBody?: string | null): Promise<Session | undefined> {
      const id = named(context, fromBody);
      if (id) return required(id, await sessions.resume(id));
      const caller = callerOf(context, trustedProxies);
      const latest = latestOf.get(caller);
      if (latest === undefined) return undefined;
      const session = await sessions.resume(latest);
      // That it is gone is told once: a client that plays on without an id gets another one.
      if (!session) latestOf.delete(caller);
      return required(latest, session);
    },

    /** The named session, which the caller is about to reset. @throws EnvironmentError `UNKNOWN_SESSION`, `SESSION_DELETED` */
    toReset: async (id: string) => required(id, await sessions.restart(id)),

    /** The client of a request, for its quotas and for work that it waits for. */
    caller: (context: Context): Caller => ({ name: context.get('client'), signal: context.req.raw.signal }),

    /** Makes a session the caller's latest, as `POST /reset` does. */
    remember: (context: Context, { id }: Session) => latestOf.set(callerOf(context, trustedProxies), id),
  };
}

function required(id: string, session: Session | undefined): Session {
  if (!session) throw missingSession(id);
  return session;
}

/**
 * Digest of who a request without a `session_id` comes from: the `authorization` header, which many may share, the
 * network and the user agent together. Headers can be long, so that only the digest is kept.
 */
function callerOf(context: Context, trustedProxies: number): string {
  const network = clientNetwork(clientAddress(guarded(context), trustedProxies));
  const caller = [context.req.header('authorization'), network, context.req.header('user-agent')];
  return createHash('sha256').update(JSON.stringify(caller)).digest('base64');
}
