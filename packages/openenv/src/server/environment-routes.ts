import type { Context, Hono } from 'hono';
import {
  type AnswerFields,
  type EnvironmentDefinition,
  EnvironmentError,
  type StepResult,
} from '../definition.ts';
import type { ActionReader } from '../input/action-reader.ts';
import { readAt } from '../input/invalid-input-error.ts';
import type { ResetOptionsReader } from '../input/reset-options-reader.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { readBody, requestBody, requestJson } from './request-body.ts';
import { resetRequest, stepRequest } from './request-schemas.ts';
import type { RequestSessions } from './request-sessions.ts';

/** `/reset`, `/step` and `/state`, which act on sessions. */
export function mountEnvironmentRoutes(
  app: Hono,
  parts: {
    readonly sessions: SessionRegistry;
    readonly requestSessions: RequestSessions;
    readonly readAction: ActionReader<unknown>;
    readonly readResetOptions: ResetOptionsReader;
    readonly httpFields?: EnvironmentDefinition<unknown, object, object>['httpFields'];
  },
): void {
  const { sessions, requestSessions, readAction, readResetOptions, httpFields } = parts;

  app.post('/reset', async (context) => {
    const json = await requestJson(context);
    const body = readBody(json, resetRequest);
    const options = readAt(['body'], () => readResetOptions(json));
    const session = body.session_id
      ? await requestSessions.toReset(body.session_id)
      : sessions.open(requestSessions.caller(context).name);
    try {
      const result = await session.reset(options);
      requestSessions.remember(context, session);
      return answer(context, session, result, httpFields?.reset);
    } catch (error) {
      // A session that was opened for this request and never got an episode is of no use to anybody.
      if (!body.session_id) await sessions.release(session.id);
      throw error;
    }
  });

  app.post('/step', async (context) => {
    const body = await requestBody(context, stepRequest);
    const action = readAction(body.action);
    const session = await requestSessions.of(context, body.session_id);
    if (!session) {
      throw new EnvironmentError('NOT_RESET', 'You have no session yet. POST /reset first.');
    }
    return answer(context, session, await session.step(action), httpFields?.step);
  });

  app.get('/state', async (context) => {
    const session = await requestSessions.of(context);
    return context.json(session ? await session.state() : { episode_id: null, step_count: 0 });
  });
}

function answer(
  context: Context,
  session: Session,
  result: StepResult<object>,
  fields: AnswerFields<object> | undefined,
): Response {
  const { observation, reward, done, metadata } = result;
  return context.json({
    ...fields?.of(result),
    observation,
    reward,
    done,
    session_id: session.id,
    metadata: metadata ?? null,
  });
}
