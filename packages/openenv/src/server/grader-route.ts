import type { Hono } from 'hono';
import { type EnvironmentDefinition, EnvironmentError, type EpisodeRecord } from '../definition.ts';
import { isJsonObject, type JsonObject } from '../json/json-object.ts';
import type { ActionReader } from '../validation/action-reader.ts';
import { InvalidInputError } from '../validation/invalid-input-error.ts';
import { resetOptionsReader } from '../validation/reset-options-reader.ts';
import { readEpisodeLog } from './episode-log.ts';
import { HttpProblem } from './http-problem.ts';
import { requestBody } from './request-body.ts';
import { graderRequest } from './request-schemas.ts';
import type { RequestSessions } from './request-sessions.ts';

/** A log that names no seed was played on this one, unless the environment's reset options have a default. */
const UNNAMED_SEED = 0;

/** `/grader`: grades a session's own record, or a log whose actions are replayed. */
export function mountGraderRoute(
  app: Hono,
  definition: EnvironmentDefinition<unknown, object, object>,
  requestSessions: RequestSessions,
  readAction: ActionReader<unknown>,
): void {
  const readLoggedOptions = resetOptionsReader(definition, () => UNNAMED_SEED);

  app.post('/grader', async (context) => {
    if (!definition.grade) throw new HttpProblem(501, `${definition.name} has no grader.`);
    const body = await requestBody(context, graderRequest);
    if (body.episode_log !== undefined && body.episode_log !== null) {
      return context.json(await definition.grade(recordOf(body.episode_log, body)));
    }
    const record = (await requestSessions.of(context, body.session_id))?.record;
    if (!record) {
      throw new EnvironmentError(
        'NOT_RESET',
        'There is no episode to grade. POST /reset first, or send an `episode_log`.',
      );
    }
    return context.json(await definition.grade(record));
  });

  function recordOf(log: readonly unknown[] | JsonObject, body: JsonObject): EpisodeRecord {
    const episode = readEpisodeLog(log, body);
    return {
      reset: located(
        () => readLoggedOptions(episode.reset),
        isJsonObject(log) ? ['body', 'episode_log'] : ['body'],
      ),
      actions: episode.actions.map(({ action, loc }) => located(() => readAction(action), loc)),
    };
  }
}

function located<T>(read: () => T, loc: readonly (string | number)[]): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof InvalidInputError ? error.at(...loc) : error;
  }
}
