import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import {
  at,
  type Check,
  firstDifference,
  firstFlaw,
  inSession,
  must,
  notApplicable,
  should,
  shown,
} from './check.ts';
import { sampleValue } from './sample-value.ts';
import { EPISODE_ID, type InspectionSocket, type Play, SEED, type Subject, schemaCheck } from './subject.ts';

/** Longest message that clients before OpenEnv 0.2.2 take, bytes. */
const OLD_CLIENTS_LIMIT = 1024 * 1024;
/** Of which one at least gives another episode than `SEED`, where seeds matter: small environments repeat themselves. */
const OTHER_SEEDS = [8, 9, 10];
/** Enough for each choice of an action to be met. */
const DRAWN_ACTIONS = 16;
/** Keys by which `MCPToolClient` takes an observation for the reply to a tool. */
const RESERVED_KEYS = ['tools', 'tool_name'];
/** A server that closes at once does so within this time, ms. */
const CLOSES_AT_ONCE_MS = 300;

/** Opens and plays a session; without it the checks below make no sense. */
export const SESSION_CHECK = must(
  'websocket_session',
  'A session over /ws resets, steps and tells its state, one reply for each message',
  async (subject) => {
    const { observations } = await subject.play();
    return { passed: true, details: `played ${observations.length - 1} steps` };
  },
);

/** Checks of a session over `/ws`. */
export const SESSION_CHECKS: readonly Check[] = [
  must(
    'observation_message',
    'Observation messages carry an observation object, a reward and done, and nothing unknown',
    ofPlay(({ observations }) => replyFlaw(observations, messageFlaw)),
  ),
  must(
    'reward_well_formed',
    'Rewards are finite numbers; after a reset they may be null',
    ofPlay(({ observations }) =>
      replyFlaw(observations, ({ reward }, index) =>
        typeof reward === 'number' || (reward === null && index === 0)
          ? null
          : `expected a number, got ${shown(reward)}`,
      ),
    ),
  ),
  must('observation_schema', 'Observations fit the schema that GET /schema publishes', async (subject) => {
    const afterReset = schemaCheck(await subject.resetObservationSchema());
    const afterStep = schemaCheck(await subject.schema('observation'));
    return replyFlaw((await subject.play()).observations, ({ observation, reward, done }, index) =>
      (index === 0 ? afterReset : afterStep)({ ...(observation as object), reward, done }),
    );
  }),
  must(
    'state_contract',
    'The state has the requested episode_id, and step_count counts the steps from 0',
    ofPlay(({ states }) =>
      replyFlaw(states, ({ episode_id: id, step_count: count }, index) => {
        if (id !== EPISODE_ID) return `expected the episode_id "${EPISODE_ID}", got ${shown(id)}`;
        return count === index ? null : `expected the step_count ${index}, got ${shown(count)}`;
      }),
    ),
  ),
  should('state_schema', 'The state fits the schema that GET /schema publishes', async (subject) => {
    const check = schemaCheck(await subject.schema('state'));
    return replyFlaw((await subject.play()).states, check);
  }),
  must(
    'state_before_reset',
    'The state can be asked for before the first reset, as clients do on connecting',
    inSession(unstepped),
  ),
  must(
    'reset_again',
    'A session can be reset again and begins anew',
    inSession(async (socket, subject) => {
      const { resetOptions } = subject.options;
      const action = await subject.action();
      await socket.reset(resetOptions);
      await socket.step(action);
      await socket.reset(resetOptions);
      return unstepped(socket);
    }),
  ),
  should('seed_determinism', 'The same seed and actions give the same episode', async (subject) => {
    const [first, second] = [await subject.play(), await subject.playAgain()];
    const difference = firstDifference(withoutMetadata(first), withoutMetadata(second), 'reply');
    return difference && `two episodes with one seed differ: ${difference}`;
  }),
  should('seed_control', 'Another seed gives another episode', async (subject) => {
    const first = withoutMetadata(await subject.play());
    for (const seed of OTHER_SEEDS) {
      const other = withoutMetadata(await subject.playAgain(seed));
      if (firstDifference(first, other, 'reply') !== null) return null;
    }
    return `the seeds ${[SEED, ...OTHER_SEEDS].join(', ')} gave the same episode`;
  }),
  should(
    'action_schema',
    'Actions drawn from the schema that GET /schema publishes are taken',
    async (subject) => {
      if (subject.options.action) return notApplicable('an action was given');
      const schema = await subject.schema('action');
      const fits = schemaCheck(schema);
      const random = seededRandom(SEED);
      return subject.withSession(async (socket) => {
        const reset = { seed: SEED, ...subject.options.resetOptions };
        let { done } = await socket.reset(reset);
        for (let drawn = 0; drawn < DRAWN_ACTIONS; drawn++) {
          const data = sampleValue(schema, random);
          if (!isJsonObject(data) || fits(data) !== null)
            return notApplicable('no action can be drawn from the schema');
          if (done === true) await socket.reset(reset);
          try {
            ({ done } = await socket.step(data));
          } catch (error) {
            if ((error as { code?: unknown }).code !== 'TIMEOUT') throw error;
            return notApplicable(`${shown(data)} takes longer than ${subject.options.timeoutMs / 1000} s`);
          }
        }
        return null;
      });
    },
  ),
  must(
    'session_isolation',
    'Sessions do not see one another',
    inSession(async (one, subject) => {
      const other = await subject.connect();
      try {
        if ((await other.ask({ type: 'state' })).type === 'error') {
          return notApplicable('the server has room for one session only');
        }
        const action = await subject.action();
        const reset = subject.options.resetOptions;
        await one.reset(reset);
        await other.reset(reset);
        await one.step(action);
        const { step_count: count } = await other.state();
        return count === 0 ? null : 'a step of one session counts in another';
      } finally {
        await other.close();
      }
    }),
  ),
  must(
    'pipelined_messages',
    'Messages that are sent without waiting are answered one by one, in order',
    inSession(async (socket, subject) => {
      const messages = [{ type: 'reset', data: subject.options.resetOptions }, { type: 'state' }];
      const sent = [...messages, ...messages];
      for (const message of sent) socket.send(message);
      const types: unknown[] = [];
      while (types.length < sent.length) types.push((await socket.next()).type);
      const expected = ['observation', 'state', 'observation', 'state'];
      return { passed: types.join() === expected.join(), expected, actual: types };
    }),
  ),
  must(
    'metadata_in_action',
    'Actions may carry a metadata object, as those of the Python clients do',
    inSession(async (socket, subject) => {
      await socket.reset(subject.options.resetOptions);
      await socket.step({ ...(await subject.action()), metadata: {} });
      return null;
    }),
  ),
  must(
    'unknown_reset_option',
    'Options of a reset that the environment does not know are ignored',
    inSession(async (socket, subject) => {
      await socket.reset({ ...subject.options.resetOptions, unknown_option_of_servegym: 1 });
      return null;
    }),
  ),
  must(
    'websocket_ping',
    'Pings are answered, as proxies and clients expect',
    inSession(async (socket) => {
      await socket.ping();
      return null;
    }),
  ),
  must(
    'close_message',
    'The message `close` has no reply and closes the connection with code 1000',
    inSession(async (socket) => {
      socket.send({ type: 'close' });
      const code = await socket.closedByServer();
      const [unread] = socket.unread;
      if (unread !== undefined) return `got the reply ${unread.slice(0, 200)}`;
      return { passed: code === 1000, expected: 1000, actual: code };
    }),
  ),
  should(
    'reply_size',
    'Replies are shorter than 1 MiB, which is all that old clients take',
    ofPlay(({ observations, states }) => {
      const longest = Math.max(...[...observations, ...states].map((data) => JSON.stringify(data).length));
      return longest < OLD_CLIENTS_LIMIT ? null : `a reply has ${longest} characters`;
    }),
  ),
  should(
    'reserved_observation_keys',
    'Observations have no keys that tool clients take for the reply to a tool',
    ofPlay(({ observations }) =>
      replyFlaw(observations, ({ observation }) => {
        const key = RESERVED_KEYS.find((reserved) => at(observation, reserved) !== undefined);
        return key === undefined ? null : `the observation has a key \`${key}\``;
      }),
    ),
  ),
];

/** The run of a check that looks at the episode that is played once. */
function ofPlay(flawOf: (play: Play) => string | null): Check['run'] {
  return async (subject) => flawOf(await subject.play());
}

/** The first flaw among replies, with where it is. */
function replyFlaw(
  replies: readonly JsonObject[],
  flawOf: (data: JsonObject, index: number) => string | null,
): string | null {
  return firstFlaw(replies, (data, index) => {
    const flaw = flawOf(data, index);
    return flaw && `${index === 0 ? 'after the reset' : `after step ${index}`}: ${flaw}`;
  });
}

function messageFlaw({ observation, reward, done, metadata, ...unknown }: JsonObject): string | null {
  if (!isJsonObject(observation)) return `expected an observation object, got ${shown(observation)}`;
  if (reward === undefined) return 'the reward is missing';
  if (typeof done !== 'boolean') return `expected done to be a boolean, got ${shown(done)}`;
  if (metadata !== undefined && metadata !== null && !isJsonObject(metadata)) {
    return `expected metadata to be an object, got ${shown(metadata)}`;
  }
  const [key] = Object.keys(unknown);
  return key === undefined ? null : `unknown key \`${key}\``;
}

/** A flaw unless the session has taken no step since its last reset. */
async function unstepped(socket: InspectionSocket): Promise<string | null> {
  const { step_count: count } = await socket.state();
  return count === 0 ? null : `expected the step_count 0, got ${shown(count)}`;
}

function withoutMetadata({ observations }: Play): JsonObject[] {
  return observations.map(({ observation, reward, done }) => ({ observation, reward, done }));
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Checks of a full server: its refusal, and its recovery. */
export const CAPACITY_CHECKS: readonly Check[] = [
  should(
    'capacity_refusal',
    'A full server refuses a session with the error CAPACITY_REACHED and the numbers',
    whenFull(async (refused) => {
      const reply = await refused.next();
      const { code, active_sessions: active, max_sessions: most } = (at(reply, 'data') ?? {}) as JsonObject;
      if (reply.type !== 'error' || code !== 'CAPACITY_REACHED') return `got ${shown(reply)}`;
      if (typeof active !== 'number' || typeof most !== 'number') {
        return 'the error has no active_sessions and max_sessions';
      }
      return { passed: true, details: `${active} of ${most} sessions` };
    }),
  ),
  should(
    'capacity_refusal_readable',
    'A refused client that sends before it reads can still read why',
    whenFull(async (refused) => {
      await Promise.race([refused.closed, sleep(CLOSES_AT_ONCE_MS)]);
      return refused.isClosed && 'the connection is closed at once: such a client sees nothing but that';
    }),
  ),
  must(
    'sessions_released',
    'Clients that vanish without a word leave their places to others',
    async (subject) => {
      const { sockets, isFull } = await openSessions(subject);
      await Promise.all(sockets.map((socket) => socket.vanish()));
      return isFull ? subject.withSession(async () => null) : notFull(subject);
    },
  ),
];

/** The run of a check of a socket that a full server has refused and that nothing was sent on. */
function whenFull(judge: (refused: InspectionSocket) => ReturnType<Check['run']>): Check['run'] {
  return async (subject) => {
    const { sockets, isFull } = await openSessions(subject);
    try {
      if (!isFull) return notFull(subject);
      sockets.push(await subject.connect());
      return await judge(sockets.at(-1)!);
    } finally {
      for (const socket of sockets.toReversed()) await socket.close();
    }
  };
}

function notFull({ options }: Subject) {
  return notApplicable(`the server has room for ${options.mostSessions} sessions; --sessions opens more`);
}

/** Opens as many sessions as a server gives, up to a limit. */
async function openSessions(subject: Subject): Promise<{ sockets: InspectionSocket[]; isFull: boolean }> {
  const sockets: InspectionSocket[] = [];
  let isFull = false;
  try {
    while (sockets.length < subject.options.mostSessions && !isFull) {
      const socket = await subject.connect();
      sockets.push(socket);
      isFull = await isRefused(socket);
    }
  } catch (error) {
    await Promise.all(sockets.map((socket) => socket.close()));
    throw error;
  }
  return { sockets, isFull };
}

async function isRefused(socket: InspectionSocket): Promise<boolean> {
  try {
    return (await socket.ask({ type: 'state' })).type === 'error';
  } catch (error) {
    if (socket.isClosed) return true;
    throw error;
  }
}
