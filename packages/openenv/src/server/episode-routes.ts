import { z } from 'zod';
import { EnvironmentError, type EpisodeRecord } from '../protocol/definition.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import { actionReader } from '../protocol/schemas.ts';
import { readAt } from '../protocol/validation-issues.ts';
import {
  EPISODE_FORMAT,
  episodeFile,
  episodeFileSchema,
  MAX_EPISODE_ACTIONS,
  replayEpisode,
  replayRecord,
} from '../sessions/episode.ts';
import type { OpenEnvServer } from './create-server.ts';
import { described, httpProblem, jsonValue } from './route-table.ts';

const openRequest = episodeFileSchema
  .extend({
    environment: episodeFileSchema.shape.environment
      .nullish()
      .meta({ description: 'Where it was played; without, it is taken for an episode of this server' }),
    windows_from: z
      .int()
      .min(0)
      .nullish()
      .meta({ description: 'Answer the results from this one on; 0, the default, is that of the reset' }),
  })
  .meta({ title: 'OpenEpisodeRequest' });

/**
 * Episodes as files: `GET /episodes/{session_id}` gives the file of a session's episode, `POST /episodes` plays a file
 * into a new session, which can then be played on, and says whether it came out as the file's digest has it. Mounted by
 * whoever wants them; only for environments that can be replayed.
 */
export function mountEpisodeRoutes(server: OpenEnvServer): void {
  const { definition, sessions } = server;
  const readAction = actionReader(definition.action);
  const readResetOptions = resetOptionsReader(definition);

  server.addRoute(
    {
      ...described('get_episode'),
      description: `Its environment, version, reset options and actions, with a digest of all that they answered. The format is \`${EPISODE_FORMAT}\`.`,
      answer: episodeFileSchema,
    },
    async (context, { parameters }) => {
      const record = (await server.requestSessions.of(context, parameters.session_id))?.record;
      if (!record) {
        throw new EnvironmentError('NOT_RESET', 'The session has no episode yet. Reset it first.');
      }
      const kept: EpisodeRecord = { reset: record.reset, actions: [...record.actions] };
      const { digest } = await replayRecord(definition, kept, server.requestSessions.caller(context).name);
      return episodeFile(definition, kept, digest);
    },
  );

  server.addRoute(
    {
      ...described('open_episode_post'),
      description: `At most ${MAX_EPISODE_ACTIONS} actions. \`verified\` is true when the episode matches its digest, bit for bit; \`null\` without a digest. The session can be played on.`,
      body: openRequest,
      answer: z.object({
        session_id: z.string(),
        environment: z.object({ id: z.string(), version: z.string() }),
        digest: z.string(),
        verified: z.boolean().nullable(),
        done: z.boolean(),
        windows: z.array(jsonValue<object>({ type: 'object' })),
      }),
    },
    async (context, { body: file }) => {
      if (file.environment && file.environment.id !== definition.id) {
        throw httpProblem(
          409,
          `The episode was played on \`${file.environment.id}\`; this server has \`${definition.id}\`. Open it on a server of its environment.`,
          'FOREIGN_EPISODE',
        );
      }
      const reset = readAt(['body', 'reset'], () => readResetOptions(file.reset));
      const actions = file.actions.map((action, i) =>
        readAt(['body', 'actions', i], () => readAction(action)),
      );
      const from = file.windows_from ?? 0;
      const windows: object[] = [];
      const client = server.requestSessions.caller(context).name;
      const session = sessions.open(client);
      try {
        const { digest, done } = await replayEpisode(session, { reset, actions }, client, (result, index) => {
          if (index < from) return;
          windows.push(index === 0 ? result : { action: actions[index - 1], ...result });
        });
        server.requestSessions.remember(context, session);
        return {
          session_id: session.id,
          environment: { id: definition.id, version: definition.version },
          digest,
          verified: file.digest ? file.digest === digest : null,
          done,
          windows,
        };
      } catch (error) {
        await sessions.close(session.id);
        throw error;
      }
    },
  );
}
