import type { Hono } from 'hono';
import {
  type EnvironmentDefinition,
  EnvironmentError,
  type EpisodeRecord,
  type ResetOptions,
} from '../definition.ts';
import { gradeRecord } from '../episodes/grade-record.ts';
import type { ActionReader } from '../input/action-reader.ts';
import { readAt } from '../input/invalid-input-error.ts';
import { givenOptionsReader } from '../input/reset-options-reader.ts';
import { isJsonObject, type JsonObject } from '../json/json-object.ts';
import { readEpisodeLog } from './episode-log.ts';
import { HttpProblem } from './http-problem.ts';
import { loggedOptions, type SessionOfLog } from './logged-options.ts';
import { requestBody } from './request-body.ts';
import { graderRequest } from './request-schemas.ts';
import type { RequestSessions } from './request-sessions.ts';

/** `/grader`: grades a session's own record, or a log whose actions are replayed. */
export function mountGraderRoute(
  app: Hono,
  definition: EnvironmentDefinition<unknown, object, object>,
  requestSessions: RequestSessions,
  readAction: ActionReader<unknown>,
  requireSize: (options: ResetOptions) => void,
): void {
  const readOptions = givenOptionsReader(definition);

  app.post('/grader', async (context) => {
    if (!definition.grade) throw new HttpProblem(501, `${definition.name} has no grader.`);
    const body = await requestBody(context, graderRequest);
    const record = (await requestSessions.of(context, body.session_id))?.record;
    if (body.episode_log !== undefined && body.episode_log !== null) {
      const session = record && {
        reset: record.reset,
        isNamed: requestSessions.named(context, body.session_id) !== undefined,
      };
      const logged = recordOf(body.episode_log, body, session);
      requireSize(logged.reset);
      return context.json(await gradeRecord(definition, logged, requestSessions.caller(context)));
    }
    // The record has its own options; those beside it are not needed, but they must be ones.
    const { episode_log: _, session_id: __, ...options } = body;
    readAt(['body'], () => readOptions(options));
    if (!record) {
      throw new EnvironmentError(
        'NOT_RESET',
        'There is no episode to grade. POST /reset first, or send an `episode_log`.',
      );
    }
    return context.json(await gradeRecord(definition, record, requestSessions.caller(context)));
  });

  function recordOf(
    log: readonly unknown[] | JsonObject,
    body: JsonObject,
    session?: SessionOfLog | null,
  ): EpisodeRecord {
    const episode = readEpisodeLog(log, body);
    const given = readAt(isJsonObject(log) ? ['body', 'episode_log'] : ['body'], () =>
      readOptions(episode.reset),
    );
    return {
      reset: loggedOptions(given, session ?? undefined),
      actions: episode.actions.map(({ action, loc }) => readAt(loc, () => readAction(action))),
    };
  }
}
