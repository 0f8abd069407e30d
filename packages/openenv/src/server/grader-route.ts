import { z } from 'zod';
import { EnvironmentError, type EpisodeRecord } from '../definition.ts';
import { gradeRecord } from '../episodes/replay-episode.ts';
import { givenOptionsReader } from '../input/reset-options-reader.ts';
import { readAt } from '../input/validation-issues.ts';
import { isJsonObject, type JsonObject } from '../json/read-json.ts';
import { gradeBody, type JsonSchema } from '../protocol/http-body.ts';
import { describedOptions, type RouteParts, sessionId } from './environment-routes.ts';
import { LOG_LISTS, loggedOptions, readEpisodeLog, type SessionOfLog } from './episode-log.ts';
import type { AddRoute } from './route-table.ts';

/** `/grader`: grades a session's own record, or a log whose actions are replayed. */
export function mountGraderRoute(
  addRoute: AddRoute,
  { definition, schemas, sessions, requestSessions, readAction }: RouteParts,
): void {
  const readOptions = givenOptionsReader(definition);

  addRoute(
    {
      method: 'post',
      path: '/grader',
      operationId: 'grade_post',
      tag: 'Grading',
      summary: 'Grade an episode',
      description:
        "Grades the session's own episode, or replays the actions of an `episode_log`. Options of the reset stand beside the log; those that do not are as in the session (the named one, or the caller's latest) where its task is the same. The score is strictly inside (0, 1); `replayed` names task and seed.",
      body: z
        .looseObject({
          ...describedOptions(definition),
          session_id: sessionId,
          episode_log: z
            .union([
              z.array(z.unknown()),
              ...LOG_LISTS.map((list) => z.looseObject({ [list]: z.array(z.unknown()) })),
            ])
            .nullish()
            .meta({ ...logSchema(schemas.action) }),
        })
        .meta({ title: 'GraderRequest' }),
      answer: gradeBody.required({ replayed: true }),
      errors: {
        400: 'The episode cannot be replayed, or its seed is unknown (`SEED_REQUIRED`)',
        404: 'Unknown session, or unknown task',
        409: 'There is no episode to grade (`NOT_RESET`)',
        422: 'Invalid log',
      },
    },
    async (context, { body }) => {
      const record = (await requestSessions.of(context, body.session_id))?.record;
      if (body.episode_log !== undefined && body.episode_log !== null) {
        const session = record && {
          reset: record.reset,
          isNamed: requestSessions.named(context, body.session_id) !== undefined,
        };
        const logged = recordOf(body.episode_log, body, session);
        sessions.requireEpisodeSize(logged.reset);
        return gradeRecord(definition, logged, requestSessions.caller(context));
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
      return gradeRecord(definition, record, requestSessions.caller(context));
    },
  );

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

/** The forms of log that `readEpisodeLog` takes. */
function logSchema(action: JsonSchema): JsonSchema {
  const step: JsonSchema = {
    anyOf: [
      {
        type: 'object',
        properties: { action: { anyOf: [action, { type: 'null' }] } },
        required: ['action'],
      },
      { ...action, not: { required: ['action'] } },
    ],
  };
  const list: JsonSchema = { type: 'array', items: step };
  return {
    description:
      'Steps, each an action or an object with an `action`. The actions are replayed; claimed observations are ignored',
    anyOf: [
      list,
      ...LOG_LISTS.map((name) => ({
        type: 'object',
        properties: { reset: { type: 'object', description: 'Options of the reset' }, [name]: list },
        required: [name],
        not: { anyOf: LOG_LISTS.filter((other) => other !== name).map((other) => ({ required: [other] })) },
      })),
      { type: 'null' },
    ],
  };
}
