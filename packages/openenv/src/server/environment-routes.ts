import { z } from 'zod';
import type { StateBody } from '../protocol/bodies.ts';
import { type EnvironmentDefinition, EnvironmentError } from '../protocol/definition.ts';
import { resetOptionsSchema } from '../protocol/reset-options.ts';
import { toJsonSchema } from '../protocol/schemas.ts';
import { readAt } from '../protocol/validation-issues.ts';
import type { Session } from '../sessions/session.ts';
import { type AddRoute, described, jsonValue, sessionIdSchema } from './route-table.ts';
import type { ServerParts } from './server-options.ts';

type AnswerFields = NonNullable<NonNullable<EnvironmentDefinition['httpFields']>['reset']>;

export const sessionId = sessionIdSchema("The session to act on; without one, the caller's latest");

/** `/reset`, `/step` and `/state`, which act on sessions. */
export function mountEnvironmentRoutes(addRoute: AddRoute, parts: ServerParts): void {
  addResetRoute(addRoute, parts);
  addStepRoute(addRoute, parts);
  addRoute(
    {
      ...described('endpoint_state_get'),
      query: z.object({
        session_id: z
          .string()
          .optional()
          .meta({ description: "The session; without one, the caller's latest" }),
      }),
      answer: jsonValue<StateBody>(parts.schemas.state),
    },
    async (context, { query }) => {
      const session = await parts.requestSessions.of(context, query.session_id);
      return session ? session.state() : { episode_id: null, step_count: 0 };
    },
  );
}

function addResetRoute(
  addRoute: AddRoute,
  { definition, sessions, requestSessions, readResetOptions }: ServerParts,
): void {
  addRoute(
    {
      ...described('reset_reset_post'),
      body: z
        .looseObject({
          ...describedOptions(definition),
          session_id: sessionIdSchema('The session to start again; without one, a new session is opened'),
        })
        .meta({ title: 'ResetRequest', examples: [{ seed: 42, episode_id: 'episode-001' }, {}] }),
      answer: resultSchema(definition, definition.httpFields?.reset),
    },
    async (context, { body }) => {
      const options = readAt(['body'], () => readResetOptions(body));
      const session = body.session_id
        ? await requestSessions.toReset(body.session_id)
        : sessions.open(requestSessions.caller(context).name);
      try {
        const result = await session.reset(options);
        requestSessions.remember(context, session);
        return answer(session, result, definition.httpFields?.reset);
      } catch (error) {
        // A session that was opened for this request and never got an episode has no use.
        if (!body.session_id) await sessions.release(session.id);
        throw error;
      }
    },
  );
}

function addStepRoute(
  addRoute: AddRoute,
  { definition, schemas, requestSessions, readAction }: ServerParts,
): void {
  addRoute(
    {
      ...described('step_step_post'),
      body: z
        .looseObject({
          action: z.record(z.string(), z.unknown()).meta(schemas.action as z.GlobalMeta),
          session_id: sessionId,
          timeout_s: z
            .number()
            .gt(0)
            .nullish()
            .meta({ description: 'Accepted for compatibility; a step always runs to its end' }),
          request_id: z.string().max(255).nullish().meta({ description: 'A label of the request' }),
        })
        .meta({ title: 'StepRequest' }),
      answer: resultSchema(definition, definition.httpFields?.step),
    },
    async (context, { body }) => {
      const action = readAction(body.action);
      const session = await requestSessions.of(context, body.session_id);
      if (!session) {
        throw new EnvironmentError('NOT_RESET', 'You have no session yet. POST /reset first.');
      }
      return answer(session, await session.step(action), definition.httpFields?.step);
    },
  );
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
    reward: z.number().nullable().meta({ description: 'Reward of the action; null after a reset' }),
    done: z.boolean().meta({ description: 'Whether the episode is over' }),
    session_id: z.string(),
    metadata: z.union([jsonValue<object>({ type: 'object' }), z.null()]),
  });
}

function answer(
  session: Session,
  result: Awaited<ReturnType<Session['step']>>,
  fields: AnswerFields | undefined,
) {
  const { observation, reward, done, metadata } = result;
  return {
    ...fields?.of(result),
    observation,
    reward,
    done,
    session_id: session.id,
    metadata: metadata ?? null,
  };
}
