import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import {
  at,
  type Check,
  CheckFailure,
  failed,
  firstDifference,
  NoReplyFailure,
  notApplicable,
  PASSED,
  shown,
  unless,
} from './check.ts';
import { sampleValue } from './sample-value.ts';
import { EPISODE_ID, type InspectionSocket, type Play, SEED, type Subject, schemaCheck } from './subject.ts';

/** A server that closes at once does so within this time, ms. */
const CLOSES_AT_ONCE_MS = 300;

/** Checks of a full server: its refusal, and its recovery. */
export const CAPACITY_CHECKS: readonly Check[] = [
  {
    id: 'capacity_refusal',
    description: 'A full server refuses a session with the error CAPACITY_REACHED and the numbers',
    required: false,
    run: (subject) =>
      whenFull(subject, async (refused) => {
        const reply = await refused.next();
        const { code, active_sessions: active, max_sessions: most } = (at(reply, 'data') ?? {}) as JsonObject;
        if (reply.type !== 'error' || code !== 'CAPACITY_REACHED') return failed(`got ${shown(reply)}`);
        if (typeof active !== 'number' || typeof most !== 'number') {
          return failed('the error has no active_sessions and max_sessions');
        }
        return { passed: true, details: `${active} of ${most} sessions` };
      }),
  },
  {
    id: 'capacity_refusal_readable',
    description: 'A refused client that sends before it reads can still read why',
    required: false,
    run: (subject) =>
      whenFull(subject, async (refused) => {
        await Promise.race([refused.closed, sleep(CLOSES_AT_ONCE_MS)]);
        return refused.isClosed
          ? failed('the connection is closed at once: such a client sees nothing but that')
          : PASSED;
      }),
  },
  {
    id: 'sessions_released',
    description: 'Clients that vanish without a word leave their places to others',
    required: true,
    run: async (subject) => {
      const sessions = await OpenSessions.open(subject);
      await sessions.vanish();
      if (!sessions.isFull) return notFull(subject);
      return subject.withSession(async () => PASSED);
    },
  },
];

/** Judges a socket that a full server has refused and that nothing was sent on. */
async function whenFull(
  subject: Subject,
  judge: (refused: InspectionSocket) => Promise<ReturnType<typeof failed>>,
) {
  const sessions = await OpenSessions.open(subject);
  try {
    if (!sessions.isFull) return notFull(subject);
    const refused = await subject.connect();
    try {
      return await judge(refused);
    } finally {
      await refused.close();
    }
  } finally {
    await sessions.close();
  }
}

function notFull({ options }: Subject) {
  return notApplicable(`the server has room for ${options.mostSessions} sessions; --sessions opens more`);
}

/** As many sessions as a server gives, up to a limit. */
class OpenSessions {
  readonly #sockets: InspectionSocket[] = [];
  isFull = false;

  static async open(subject: Subject): Promise<OpenSessions> {
    const sessions = new OpenSessions();
    try {
      while (sessions.#sockets.length < subject.options.mostSessions && !sessions.isFull) {
        const socket = await subject.connect();
        sessions.#sockets.push(socket);
        sessions.isFull = await isRefused(socket);
      }
    } catch (error) {
      await sessions.close();
      throw error;
    }
    return sessions;
  }

  async close(): Promise<void> {
    await Promise.all(this.#sockets.map((socket) => socket.close()));
  }

  async vanish(): Promise<void> {
    await Promise.all(this.#sockets.map((socket) => socket.vanish()));
  }
}

async function isRefused(socket: InspectionSocket): Promise<boolean> {
  try {
    return (await socket.ask({ type: 'state' })).type === 'error';
  } catch (error) {
    if (error instanceof CheckFailure && socket.isClosed) return true;
    throw error;
  }
}

/** Longest message that clients before OpenEnv 0.2.2 take, bytes. */
const OLD_CLIENTS_LIMIT = 1024 * 1024;
/** Of which one at least gives another episode than `SEED`, where seeds matter: small environments repeat themselves. */
const OTHER_SEEDS = [8, 9, 10];
/** Enough for each choice of an action to be met. */
const DRAWN_ACTIONS = 16;
/** Keys by which `MCPToolClient` takes an observation for the reply to a tool. */
const RESERVED_KEYS = ['tools', 'tool_name'];

/** Opens and plays a session; without it the checks below make no sense. */
export const SESSION_CHECK: Check = {
  id: 'websocket_session',
  description: 'A session over /ws resets, steps and tells its state, one reply for each message',
  required: true,
  async run(subject) {
    const { observations } = await subject.play();
    return { passed: true, details: `played ${observations.length - 1} steps` };
  },
};

/** Checks of a session over `/ws`. */
export const SESSION_CHECKS: readonly Check[] = [
  {
    id: 'observation_message',
    description: 'Observation messages carry an observation object, a reward and done, and nothing unknown',
    required: true,
    run: (subject) => judgePlay(subject, ({ observations }) => firstFlaw(observations, messageFlaw)),
  },
  {
    id: 'reward_well_formed',
    description: 'Rewards are finite numbers; after a reset they may be null',
    required: true,
    run: (subject) =>
      judgePlay(subject, ({ observations }) =>
        firstFlaw(observations, ({ reward }, index) =>
          typeof reward === 'number' || (reward === null && index === 0)
            ? null
            : `expected a number, got ${shown(reward)}`,
        ),
      ),
  },
  {
    id: 'observation_schema',
    description: 'Observations fit the schema that GET /schema publishes',
    required: true,
    async run(subject) {
      const afterReset = schemaCheck(await subject.resetObservationSchema());
      const afterStep = schemaCheck(await subject.schema('observation'));
      return judgePlay(subject, ({ observations }) =>
        firstFlaw(observations, ({ observation, reward, done }, index) =>
          (index === 0 ? afterReset : afterStep)({ ...(observation as object), reward, done }),
        ),
      );
    },
  },
  {
    id: 'state_contract',
    description: 'The state has the requested episode_id, and step_count counts the steps from 0',
    required: true,
    run: (subject) =>
      judgePlay(subject, ({ states }) =>
        firstFlaw(states, ({ episode_id: id, step_count: count }, index) => {
          if (id !== EPISODE_ID) return `expected the episode_id "${EPISODE_ID}", got ${shown(id)}`;
          return count === index ? null : `expected the step_count ${index}, got ${shown(count)}`;
        }),
      ),
  },
  {
    id: 'state_schema',
    description: 'The state fits the schema that GET /schema publishes',
    required: false,
    async run(subject) {
      const check = schemaCheck(await subject.schema('state'));
      return judgePlay(subject, ({ states }) => firstFlaw(states, check));
    },
  },
  {
    id: 'state_before_reset',
    description: 'The state can be asked for before the first reset, as clients do on connecting',
    required: true,
    async inSession(socket) {
      const { step_count: count } = await socket.state();
      return unless(count === 0 ? null : `expected the step_count 0, got ${shown(count)}`);
    },
  },
  {
    id: 'reset_again',
    description: 'A session can be reset again and begins anew',
    required: true,
    async inSession(socket, subject) {
      const { resetOptions } = subject.options;
      const action = await subject.action();
      await socket.reset(resetOptions);
      await socket.step(action);
      await socket.reset(resetOptions);
      const { step_count: count } = await socket.state();
      return unless(count === 0 ? null : `expected the step_count 0, got ${shown(count)}`);
    },
  },
  {
    id: 'seed_determinism',
    description: 'The same seed and actions give the same episode',
    required: false,
    async run(subject) {
      const [first, second] = [await subject.play(), await subject.playAgain()];
      const difference = firstDifference(withoutMetadata(first), withoutMetadata(second), 'reply');
      return unless(difference && `two episodes with one seed differ: ${difference}`);
    },
  },
  {
    id: 'seed_control',
    description: 'Another seed gives another episode',
    required: false,
    async run(subject) {
      const first = withoutMetadata(await subject.play());
      for (const seed of OTHER_SEEDS) {
        const other = withoutMetadata(await subject.playAgain(seed));
        if (firstDifference(first, other, 'reply') !== null) return PASSED;
      }
      return failed(`the seeds ${[SEED, ...OTHER_SEEDS].join(', ')} gave the same episode`);
    },
  },
  {
    id: 'action_schema',
    description: 'Actions drawn from the schema that GET /schema publishes are taken',
    required: false,
    async run(subject) {
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
            if (!(error instanceof NoReplyFailure)) throw error;
            return notApplicable(`${shown(data)} takes longer than ${subject.options.timeoutMs / 1000} s`);
          }
        }
        return PASSED;
      });
    },
  },
  {
    id: 'session_isolation',
    description: 'Sessions do not see one another',
    required: true,
    async inSession(one, subject) {
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
        return unless(count === 0 ? null : 'a step of one session counts in another');
      } finally {
        await other.close();
      }
    },
  },
  {
    id: 'pipelined_messages',
    description: 'Messages that are sent without waiting are answered one by one, in order',
    required: true,
    async inSession(socket, subject) {
      const messages = [{ type: 'reset', data: { ...subject.options.resetOptions } }, { type: 'state' }];
      const sent = [...messages, ...messages];
      for (const message of sent) socket.send(message);
      const types: unknown[] = [];
      while (types.length < sent.length) types.push((await socket.next()).type);
      const expected = ['observation', 'state', 'observation', 'state'];
      return { passed: types.join() === expected.join(), expected, actual: types };
    },
  },
  {
    id: 'metadata_in_action',
    description: 'Actions may carry a metadata object, as those of the Python clients do',
    required: true,
    async inSession(socket, subject) {
      await socket.reset(subject.options.resetOptions);
      const data = { ...(await subject.action()), metadata: {} };
      await socket.step(data);
      return PASSED;
    },
  },
  {
    id: 'unknown_reset_option',
    description: 'Options of a reset that the environment does not know are ignored',
    required: true,
    async inSession(socket, subject) {
      const data = { ...subject.options.resetOptions, unknown_option_of_servegym: 1 };
      await socket.reset(data);
      return PASSED;
    },
  },
  {
    id: 'websocket_ping',
    description: 'Pings are answered, as proxies and clients expect',
    required: true,
    async inSession(socket) {
      await socket.ping();
      return PASSED;
    },
  },
  {
    id: 'close_message',
    description: 'The message `close` has no reply and closes the connection with code 1000',
    required: true,
    async inSession(socket) {
      socket.send({ type: 'close' });
      const code = await socket.closedByServer();
      const { unread } = socket;
      if (unread.length > 0) return failed(`got the reply ${unread[0]?.slice(0, 200)}`);
      return { passed: code === 1000, expected: 1000, actual: code };
    },
  },
  {
    id: 'reply_size',
    description: 'Replies are shorter than 1 MiB, which is all that old clients take',
    required: false,
    run: (subject) =>
      judgePlay(subject, ({ observations, states }) => {
        const longest = Math.max(...[...observations, ...states].map((data) => JSON.stringify(data).length));
        return longest < OLD_CLIENTS_LIMIT ? null : `a reply has ${longest} characters`;
      }),
  },
  {
    id: 'reserved_observation_keys',
    description: 'Observations have no keys that tool clients take for the reply to a tool',
    required: false,
    run: (subject) =>
      judgePlay(subject, ({ observations }) =>
        firstFlaw(observations, ({ observation }) => {
          const key = RESERVED_KEYS.find((reserved) => at(observation, reserved) !== undefined);
          return key === undefined ? null : `the observation has a key \`${key}\``;
        }),
      ),
  },
];

async function judgePlay(subject: Subject, flawOf: (play: Play) => string | null) {
  return unless(flawOf(await subject.play()));
}

/** The first flaw among replies, with where it is. */
function firstFlaw(
  replies: readonly JsonObject[],
  flawOf: (data: JsonObject, index: number) => string | null,
): string | null {
  for (const [index, data] of replies.entries()) {
    const flaw = flawOf(data, index);
    if (flaw !== null) return `${index === 0 ? 'after the reset' : `after step ${index}`}: ${flaw}`;
  }
  return null;
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
