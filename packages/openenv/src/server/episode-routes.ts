import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { EnvironmentError, type EpisodeRecord, type ResetOptions } from '../protocol/definition.ts';
import { gradeBody, type JsonSchema } from '../protocol/messages.ts';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import {
  type GivenOptions,
  givenOptionsReader,
  resetOptionsReader,
  resetOptionsSchema,
} from '../protocol/reset-options.ts';
import { actionReader, invalidInput, readAt } from '../protocol/schemas.ts';
import {
  EPISODE_FORMAT,
  type EpisodeFile,
  episodeFileSchema,
  gradeRecord,
  MAX_EPISODE_ACTIONS,
  replayEpisode,
  replayRecord,
} from '../sessions/episode.ts';
import type { OpenEnvServer, ServerParts } from './create-server.ts';
import { describedOptions, describedOthers, sessionId } from './environment-routes.ts';
import { type AddRoute, described, httpProblem, jsonValue } from './route-table.ts';

const openRequest = episodeFileSchema
  .extend({
    environment: episodeFileSchema.shape.environment
      .nullish()
      .describe('Where it was played; without, it is taken for an episode of this server'),
    windows_from: z
      .int()
      .min(0)
      .nullish()
      .describe('Answer the results from this one on; 0, the default, is that of the reset'),
  })
  .meta({ title: 'OpenEpisodeRequest' });

/**
 * Episodes as files: `GET /episodes/{session_id}` gives the file of a session's episode, `POST /episodes` plays a file
 * into a new session, which can then be played on, and says whether it came out as the file's digest has it. Mounted by
 * whoever wants them; only for environments that can be replayed.
 */
export function mountEpisodeRoutes(server: OpenEnvServer): void {
  const { definition, sessions } = server;
  const { id, version } = definition;
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
      return { format: EPISODE_FORMAT, environment: { id, version }, ...kept, digest } satisfies EpisodeFile;
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
      if (file.environment && file.environment.id !== id) {
        const problem = `The episode was played on \`${file.environment.id}\`; this server has \`${id}\`. Open it on a server of its environment.`;
        throw httpProblem(409, problem, 'FOREIGN_EPISODE');
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
          environment: { id, version },
          ...{ digest, done, windows },
          verified: file.digest ? file.digest === digest : null,
        };
      } catch (error) {
        await sessions.close(session.id);
        throw error;
      }
    },
  );
}

/** Under which of these keys a log that is an object has its steps; the first that is there counts. */
const LOG_LISTS = ['steps', 'episode_log', 'log', 'actions'] as const;

/**
 * Reads the forms of log that clients send: a list, or an object with `steps`, `actions`, `log` or `episode_log`. Each
 * entry is an object with an `action`, or the action itself; an entry whose `action` is null stands for the reset.
 * Options of the reset come from `reset` or the top level of the log, and then from the request's other keys. They and the
 * actions, each with its place in the request's body, are still to be validated; what else stands in the log is dropped unread.
 */
function readEpisodeLog(
  log: readonly unknown[] | JsonObject,
  { episode_log, session_id, ...options }: JsonObject,
  isOption: (key: string) => boolean,
) {
  const outer = isJsonObject(log) ? log : {};
  const key = LOG_LISTS.find((name) => Array.isArray(outer[name]));
  const entries = (key === undefined ? log : outer[key]) as readonly unknown[];
  const place = ['body', 'episode_log', ...(key === undefined ? [] : [key])];
  const { reset = {} } = outer;
  if (!isJsonObject(reset)) {
    const loc = ['body', 'episode_log', 'reset'];
    throw invalidInput('dict_type', loc, 'Input should be a valid dictionary', reset);
  }
  const own = Object.entries({ ...outer, ...reset }).filter(([key]) => isOption(key));
  const actions = entries.map((entry, index) => {
    const wrapped = isJsonObject(entry) && 'action' in entry;
    return { action: wrapped ? entry.action : entry, loc: [...place, index, ...(wrapped ? ['action'] : [])] };
  });
  const isReset = (entry: unknown) => isJsonObject(entry) && entry.action === null;
  return {
    reset: { ...options, ...Object.fromEntries(own) },
    actions: actions.filter((_, index) => !isReset(entries[index])),
  };
}

/**
 * The options of the reset that a log was played after. What the request does not give is as in the session, where its
 * task is the same; the caller's latest session is passed over also where the request gives another seed.
 * @param played options of the reset of the session that the log may be of, and whether the request names it
 * @throws EnvironmentError `SEED_REQUIRED` when neither tells the seed and the schema has no default
 */
function loggedOptions({ options, given }: GivenOptions, played: ResetOptions | undefined, isNamed: boolean) {
  const differs = (option: string) =>
    given.has(option) && !isDeepStrictEqual(options[option], played?.[option]);
  const isOfSession = played && !differs('task_id') && (isNamed || !differs('seed'));
  const told = Object.fromEntries(Object.entries(options).filter(([option]) => given.has(option)));
  const { episode_id, seed, ...chosen } = isOfSession ? { ...options, ...played, ...told } : options;
  if (typeof seed === 'number') return { ...chosen, seed };
  const problem =
    'Expected the `seed` that the log was played on, or the `session_id` of its episode, got neither: actions are graded on the traffic that they met.';
  throw new EnvironmentError('SEED_REQUIRED', problem);
}

/** `/grader`: grades a session's own record, or a log whose actions are replayed. */
export function mountGraderRoute(
  addRoute: AddRoute,
  { definition, schemas, sessions, requestSessions, readAction }: ServerParts,
): void {
  const readOptions = givenOptionsReader(definition);
  const { shape } = resetOptionsSchema(definition);
  const isOption = (key: string) => Object.hasOwn(shape, key);

  addRoute(
    {
      ...described('grade_post'),
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
        .meta({ ...describedOthers(definition), title: 'GraderRequest' }),
      answer: gradeBody.required({ replayed: true }),
    },
    async (context, { body }) => {
      const record = (await requestSessions.of(context, body.session_id))?.record;
      const { episode_log: log, session_id, ...options } = body;
      if (log !== undefined && log !== null) {
        const episode = readEpisodeLog(log, body, isOption);
        const place = isJsonObject(log) ? ['body', 'episode_log'] : ['body'];
        const given = readAt(place, () => readOptions(episode.reset));
        const isNamed = requestSessions.named(context, session_id) !== undefined;
        const reset = loggedOptions(given, record?.reset, isNamed);
        const actions = episode.actions.map(({ action, loc }) => readAt(loc, () => readAction(action)));
        sessions.capacity.episodeSize(reset);
        return gradeRecord(definition, { reset, actions }, requestSessions.caller(context));
      }
      // The record has its own options; those beside it are not needed, but they must be ones.
      readAt(['body'], () => readOptions(options));
      if (!record) {
        const problem = 'There is no episode to grade. POST /reset first, or send an `episode_log`.';
        throw new EnvironmentError('NOT_RESET', problem);
      }
      return gradeRecord(definition, record, requestSessions.caller(context));
    },
  );
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
