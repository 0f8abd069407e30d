import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ServerError } from '../client/client-errors.ts';
import { Exchange } from '../client/exchange.ts';
import { isJsonObject, type JsonObject } from '../json/json-object.ts';
import type { ObservationBody, SchemaBody, StateBody } from '../protocol/http-body.ts';
import type { JsonSchema } from '../protocol/json-schema.ts';
import type { ClientMessage } from '../protocol/web-socket-message.ts';
import { numbersFrom, sampleValue } from './sample-action.ts';
import { type Checklist, expect } from './validation-report.ts';

export interface SessionCheckOptions {
  readonly seed: number;
  /** Most steps of an episode that is played. */
  readonly steps: number;
  readonly timeoutMs: number;
}

interface Turn {
  readonly action: JsonObject;
  readonly result: ObservationBody;
}

interface Episode {
  readonly start: ObservationBody;
  readonly turns: readonly Turn[];
}

/** What `openenv validate --url` leaves out: that sessions can be played, and that they keep their word. */
export async function checkSessions(
  list: Checklist,
  socketUrl: string,
  schemas: SchemaBody,
  options: SessionCheckOptions,
): Promise<void> {
  const { seed } = options;
  const open = () =>
    Exchange.open(socketUrl, {
      headers: {},
      connectTimeoutMs: options.timeoutMs,
      replyTimeoutMs: options.timeoutMs,
      maxMessageBytes: 100 * 1024 * 1024,
    });
  const withSession = async <T>(use: (session: Exchange) => Promise<T>): Promise<T> => {
    const session = await open();
    try {
      return await use(session);
    } finally {
      await session.close();
    }
  };

  const episode = await list.check(
    'session_plays',
    'A session on /ws plays an episode of valid actions',
    () => withSession((session) => play(session, schemas.action, seed, options.steps)),
  );
  if (!episode) return;
  const results = [episode.start, ...episode.turns.map((turn) => turn.result)];

  await list.check('reward_well_formed', 'Rewards are finite numbers, null only after a reset', () => {
    for (const [index, { reward }] of results.entries()) {
      const right = typeof reward === 'number' && Number.isFinite(reward);
      expect(right || (reward === null && index === 0), `step ${index}: got ${JSON.stringify(reward)}`);
    }
  });
  await list.check('observation_schema', 'Observations are as /schema says', () => {
    const schema = z.fromJSONSchema(schemas.observation as never);
    for (const [index, { observation, reward, done }] of results.entries()) {
      const reading = schema.safeParse({ ...observation, reward, done });
      expect(reading.success, `step ${index}: ${reading.error?.message}`);
    }
  });
  await list.check('state_contract', 'The state carries the episode_id and counts the steps', () =>
    withSession(async (session) => {
      const episodeId = `validation-${seed}`;
      await request(session, { type: 'reset', data: { seed, episode_id: episodeId } });
      const expected = [0, ...episode.turns.slice(0, 3).map((_, index) => index + 1)];
      const schema = z.fromJSONSchema(schemas.state as never);
      for (const count of expected) {
        if (count > 0) await request(session, { type: 'step', data: episode.turns[count - 1]!.action });
        const state = (await request(session, { type: 'state' })) as unknown as StateBody;
        expect(
          state.episode_id === episodeId,
          `expected the episode_id '${episodeId}', got '${state.episode_id}'`,
        );
        expect(state.step_count === count, `expected the step_count ${count}, got ${state.step_count}`);
        const reading = schema.safeParse(state);
        expect(reading.success, `the state is not as /schema says: ${reading.error?.message}`);
      }
    }),
  );
  await list.check('episode_determinism', 'The same seed and actions give the same episode', () =>
    withSession(async (session) => {
      const again = await replay(session, seed, episode.turns);
      const index = again.findIndex((result, turn) => !isDeepStrictEqual(result, results[turn]));
      expect(
        index < 0,
        `step ${index}: ${JSON.stringify(again[index])} after ${JSON.stringify(results[index])}`,
      );
    }),
  );
  await list.check('session_isolation', 'What one session does leaves another as it was', () =>
    withSession((session) =>
      withSession(async (other) => {
        await request(other, { type: 'reset', data: { seed: seed + 1 } });
        const again: unknown[] = [await request(session, { type: 'reset', data: { seed } })];
        for (const { action } of episode.turns) {
          again.push(await request(session, { type: 'step', data: action }));
          // The other may have ended; that is its own affair.
          await request(other, { type: 'step', data: action }).catch(() => {});
        }
        expect(
          isDeepStrictEqual(again, results),
          'the episode went another way while a second one was played',
        );
      }),
    ),
  );
  await list.check('errors_are_typed', 'A mistake is answered with its code, and the session goes on', () =>
    withSession(async (session) => {
      await request(session, { type: 'reset', data: { seed } });
      await refuses(session, { type: 'no such type' }, 'UNKNOWN_TYPE');
      await refuses(session, { type: 'step' }, 'VALIDATION_ERROR');
      await refuses(session, { type: 'step', data: { 'no such field': 1 } }, 'VALIDATION_ERROR');
      const state = await request(session, { type: 'state' });
      expect(state.step_count === 0, `a refused step was counted: step_count is ${state.step_count}`);
    }),
  );
  await list.check(
    'seed_control',
    'Another seed gives another episode',
    () =>
      withSession(async (session) => {
        const other = await replay(session, seed + 1, episode.turns);
        expect(!isDeepStrictEqual(other, results), 'two seeds gave the same episode');
      }),
    false,
  );
}

async function play(session: Exchange, schema: JsonSchema, seed: number, steps: number): Promise<Episode> {
  const random = numbersFrom(seed);
  const start = await request(session, { type: 'reset', data: { seed } });
  const turns: Turn[] = [];
  let { done } = start;
  while (!done && turns.length < steps) {
    const action = sampleValue(schema, random) as JsonObject;
    let result: ObservationBody;
    try {
      result = await request(session, { type: 'step', data: action });
    } catch (error) {
      throw new Error(
        `the action ${JSON.stringify(action)}, made from the schema, failed: ${(error as Error).message}`,
      );
    }
    turns.push({ action, result });
    done = result.done;
  }
  return { start, turns };
}

async function replay(session: Exchange, seed: number, turns: readonly Turn[]): Promise<ObservationBody[]> {
  const results = [await request(session, { type: 'reset', data: { seed } })];
  for (const { action } of turns) {
    if (results.at(-1)!.done) break;
    results.push(await request(session, { type: 'step', data: action }));
  }
  return results;
}

async function request(session: Exchange, message: ClientMessage & { type: 'state' }): Promise<JsonObject>;
async function request(session: Exchange, message: ClientMessage): Promise<ObservationBody>;
async function request(session: Exchange, message: ClientMessage): Promise<JsonObject | ObservationBody> {
  const reply = await session.request(message);
  const expected = message.type === 'state' ? 'state' : 'observation';
  expect(reply.type === expected, `expected a message of type '${expected}', got '${reply.type}'`);
  const data = reply.data as ObservationBody;
  expect(isJsonObject(data), 'the message has no data');
  if (expected === 'observation') {
    expect(isJsonObject(data.observation), 'observation is no object');
    expect(typeof data.done === 'boolean', `done is no boolean, but ${JSON.stringify(data.done)}`);
  }
  return data;
}

async function refuses(session: Exchange, message: object, code: string): Promise<void> {
  const shown = JSON.stringify(message);
  try {
    await session.request(message as ClientMessage);
  } catch (error) {
    if (error instanceof ServerError) {
      expect(error.code === code, `expected ${code} for ${shown}, got ${error.code}`);
      return;
    }
    throw error;
  }
  throw new Error(`expected ${code} for ${shown}, but it was taken`);
}
