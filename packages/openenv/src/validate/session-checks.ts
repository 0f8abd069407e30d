import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import {
  at,
  type Checks,
  compared,
  type Finding,
  firstDifference,
  firstFlaw,
  inSession,
  notApplicable,
  type Run,
  shown,
} from './check.ts';
import { evenlySpread, sampleValue } from './sample-value.ts';
import { EPISODE_ID, type InspectionSocket, type Play, SEED, type Subject, schemaCheck } from './subject.ts';

/** Longest message that clients before OpenEnv 0.2.2 take, bytes. */
const OLD_CLIENTS_LIMIT = 1024 * 1024;
/** Of which one at least gives another episode than `SEED`, where seeds matter: small environments repeat themselves. */
const OTHER_SEEDS = [8, 9, 10];
/** Enough for each choice of an action to be met. */
const DRAWN_ACTIONS = 16;
/** Steps and time in which an episode ends, with actions drawn from the schema: a choice. */
const MOST_STEPS = 10_000;
const MOST_MS = 10_000;
/** Keys by which `MCPToolClient` takes an observation for the reply to a tool. */
const RESERVED_KEYS = ['tools', 'tool_name'];
/** A server that closes at once does so within this time, ms. */
const CLOSES_AT_ONCE_MS = 300;

/** No action has such a key. */
const UNKNOWN_KEY = 'unknown_key_of_servegym';
/** Values of which each schema but the loosest refuses one. */
const ODD_VALUES: readonly unknown[] = [{}, [], 'text', -1e9, true, null];

/** Opens and plays a session; without it the checks below make no sense. */
export const SESSION_CHECK: Checks = {
  websocket_session: async (subject) => {
    const { observations } = await subject.play();
    return { passed: true, details: `played ${observations.length - 1} steps` };
  },
};

/** Checks of a session over `/ws`. */
export const SESSION_CHECKS: Checks = {
  observation_message: ofPlay(({ observations }) => replyFlaw(observations, messageFlaw)),
  reward_well_formed: ofPlay(({ observations }) =>
    replyFlaw(observations, ({ reward }, index) =>
      typeof reward === 'number' || (reward === null && index === 0)
        ? null
        : `expected a number, got ${shown(reward)}`,
    ),
  ),
  observation_schema: async (subject) => {
    const afterReset = schemaCheck(await subject.schema('observation', 'reset_observation'));
    const afterStep = schemaCheck(await subject.schema('observation'));
    return replyFlaw((await subject.play()).observations, ({ observation, reward, done }, index) =>
      (index === 0 ? afterReset : afterStep)({ ...(observation as object), reward, done }),
    );
  },
  state_contract: ofPlay(({ states }) =>
    replyFlaw(states, ({ episode_id: id, step_count: count }, index) => {
      if (id !== EPISODE_ID) return `expected the episode_id "${EPISODE_ID}", got ${shown(id)}`;
      return count === index ? null : `expected the step_count ${index}, got ${shown(count)}`;
    }),
  ),
  state_schema: async (subject) => {
    const check = schemaCheck(await subject.schema('state'));
    return replyFlaw((await subject.play()).states, check);
  },
  state_before_reset: inSession(unstepped),
  reset_again: inSession(async (socket, subject) => {
    const { resetOptions } = subject.options;
    const action = await subject.action();
    await socket.reset(resetOptions);
    await socket.step(action);
    await socket.reset(resetOptions);
    return unstepped(socket);
  }),
  seed_determinism: async (subject) => {
    const [first, second] = [await subject.play(), await subject.playAgain()];
    const difference = firstDifference(withoutMetadata(first), withoutMetadata(second), 'reply');
    return difference && `two episodes with one seed differ: ${difference}`;
  },
  seed_control: async (subject) => {
    const first = withoutMetadata(await subject.play());
    for (const seed of OTHER_SEEDS) {
      const other = withoutMetadata(await subject.playAgain(seed));
      if (firstDifference(first, other, 'reply') !== null) return null;
    }
    return `the seeds ${[SEED, ...OTHER_SEEDS].join(', ')} gave the same episode`;
  },
  action_schema: async (subject) => {
    if (subject.options.action) return notApplicable('an action was given');
    const { refusal, reason } = await drawnEpisode(subject);
    return refusal ?? (reason === undefined ? null : notApplicable(reason));
  },
  tasks_playable: async (subject) => {
    const tasks = await subject.tasks();
    if (tasks.length === 0) return notApplicable('the server lists no tasks');
    return subject.withSession(async (socket) => {
      for (const { id, default_action } of tasks) {
        try {
          await socket.reset({ seed: SEED, task_id: id, ...subject.options.resetOptions });
          await socket.step(isJsonObject(default_action) ? default_action : await subject.action());
        } catch (error) {
          return `task ${shown(id)}: ${(error as Error).message}`;
        }
      }
      return null;
    });
  },
  episode_end: async (subject) => {
    const { hasEnded, refusal, reason, steps } = await drawnEpisode(subject);
    if (hasEnded) return null;
    const left = refusal === undefined ? reason : `a drawn action was refused: ${refusal}`;
    if (left !== undefined) return notApplicable(left);
    if (steps < MOST_STEPS) return notApplicable(`no end in ${steps} steps of ${MOST_MS / 1000} s`);
    return `expected \`done\` within ${MOST_STEPS} steps of drawn actions: an episode that never ends trains and grades nobody`;
  },
  session_isolation: inSession(async (one, subject) => {
    const other = await subject.connect();
    try {
      if ((await other.ask({ type: 'state' })).type === 'error') {
        return notApplicable('the server has room for one session only');
      }
      const action = await subject.action();
      const reset = subject.options.resetOptions;
      await other.reset(reset);
      const before = await other.state();
      await one.reset(reset);
      await one.step(action);
      const difference = firstDifference(before, await other.state(), 'state');
      return difference && `playing one session changes another: ${difference}`;
    } finally {
      await other.close();
    }
  }),
  pipelined_messages: inSession(async (socket, subject) => {
    const messages = [{ type: 'reset', data: subject.options.resetOptions }, { type: 'state' }];
    const sent = [...messages, ...messages];
    for (const message of sent) socket.send(message);
    const types: unknown[] = [];
    while (types.length < sent.length) types.push((await socket.next()).type);
    return compared(['observation', 'state', 'observation', 'state'], types);
  }),
  metadata_in_action: inSession(async (socket, subject) => {
    await socket.reset(subject.options.resetOptions);
    await socket.step({ ...(await subject.action()), metadata: {} });
    return null;
  }),
  unknown_reset_option: inSession(async (socket, subject) => {
    const data = { ...subject.options.resetOptions, [UNKNOWN_KEY]: 1 };
    const reply = await socket.ask({ type: 'reset', data });
    const isRefused = at(reply, 'data', 'code') === 'VALIDATION_ERROR' && shown(reply).includes(UNKNOWN_KEY);
    return reply.type === 'observation' || isRefused ? null : `got ${shown(reply)}`;
  }),
  websocket_ping: inSession(async (socket) => {
    await socket.ping();
    return null;
  }),
  close_message: inSession(async (socket) => {
    socket.send({ type: 'close' });
    const code = await socket.closedByServer();
    const [unread] = socket.unread;
    if (unread !== undefined) return `got the reply ${unread.slice(0, 200)}`;
    return compared(1000, code);
  }),
  reply_size: ofPlay(({ observations, states }) => {
    const longest = Math.max(...[...observations, ...states].map((data) => JSON.stringify(data).length));
    return longest < OLD_CLIENTS_LIMIT ? null : `a reply has ${longest} characters`;
  }),
  reserved_observation_keys: ofPlay(({ observations }) =>
    replyFlaw(observations, ({ observation }) => {
      const key = RESERVED_KEYS.find((reserved) => at(observation, reserved) !== undefined);
      return key === undefined ? null : `the observation has a key \`${key}\``;
    }),
  ),
};

function ofPlay(flawOf: (play: Play) => string | null): Run {
  return async (subject) => flawOf(await subject.play());
}

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

const drawnEpisodes = new WeakMap<Subject, ReturnType<typeof playDrawn>>();

/** An episode with actions drawn from the schema: to its end, and beyond it until each choice was met. Played once. */
function drawnEpisode(subject: Subject): ReturnType<typeof playDrawn> {
  const played = drawnEpisodes.get(subject) ?? playDrawn(subject);
  drawnEpisodes.set(subject, played);
  return played;
}

/** `refusal`: why the server did not take an action that fits its schema; `reason`: why no more actions were tried. */
async function playDrawn(subject: Subject) {
  const schema = await subject.schema('action');
  const fits = schemaCheck(schema);
  const random = evenlySpread();
  return subject.withSession(async (socket) => {
    const reset = { seed: SEED, ...subject.options.resetOptions };
    let { done } = await socket.reset(reset);
    let [steps, hasEnded] = [0, done === true];
    const end = performance.now() + MOST_MS;
    while (steps < (hasEnded ? DRAWN_ACTIONS : MOST_STEPS) && performance.now() < end) {
      const data = sampleValue(schema, random);
      if (!isJsonObject(data) || fits(data) !== null)
        return { steps, hasEnded, reason: 'no action can be drawn from the schema' };
      if (done === true) await socket.reset(reset);
      try {
        ({ done } = await socket.step(data));
      } catch (error) {
        const { message, code } = error as Error & { code?: unknown };
        if (code !== 'TIMEOUT') return { steps, hasEnded, refusal: message };
        const reason = `${shown(data)} takes longer than ${subject.options.timeoutMs / 1000} s`;
        return { steps, hasEnded, reason };
      }
      steps++;
      hasEnded ||= done === true;
    }
    return { steps, hasEnded };
  });
}

async function unstepped(socket: InspectionSocket): Promise<string | null> {
  const { step_count: count } = await socket.state();
  return count === 0 ? null : `expected the step_count 0, got ${shown(count)}`;
}

function withoutMetadata({ observations }: Play): JsonObject[] {
  return observations.map(({ observation, reward, done }) => ({ observation, reward, done }));
}

/** Checks of the answers to wrong messages. */
export const ERROR_CHECKS: Checks = {
  invalid_json_refused: (subject) => judgeRefusal(subject, 'oops', 'INVALID_JSON'),
  unknown_type_refused: (subject) => judgeRefusal(subject, { type: 'nope' }, 'UNKNOWN_TYPE'),
  missing_action_refused: (subject) => judgeRefusal(subject, { type: 'step' }, 'VALIDATION_ERROR'),
  unknown_action_key_refused: async (subject) => {
    if ((await subject.schema('action')).additionalProperties !== false) {
      return notApplicable('the action schema allows further keys');
    }
    return judgeRefusal(subject, await withUnknownKey(subject), 'VALIDATION_ERROR', (errors) =>
      JSON.stringify(errors ?? null).includes(UNKNOWN_KEY)
        ? null
        : `the \`errors\` do not name the key: ${shown(errors)}`,
    );
  },
  wrong_action_value_refused: async (subject) => {
    const data = await wrongAction(subject);
    if (!data) return notApplicable('the action schema allows anything');
    return judgeRefusal(subject, { type: 'step', data }, 'VALIDATION_ERROR');
  },
  paired_after_errors: inSession(async (socket, subject) => {
    await socket.reset(subject.options.resetOptions);
    for (const message of ['oops', { type: 'nope' }, { type: 'step' }, await withUnknownKey(subject)]) {
      const reply = await socket.ask(message);
      if (reply.type !== 'error' && reply.type !== 'observation') {
        return `${shown(message)} was answered with ${shown(reply)}`;
      }
      await socket.state();
    }
    await socket.step(await subject.action());
    const [unread] = socket.unread;
    return unread !== undefined && `a message came unasked: ${unread.slice(0, 200)}`;
  }),
  odd_frames_answered: async (subject) => {
    for (const frame of [[], new TextEncoder().encode('{"type":"state"}')]) {
      const reply = await subject.withSession((socket) => socket.ask(frame));
      if (reply.type !== 'error') return `${shown(frame)} was answered with ${shown(reply)}`;
    }
    return null;
  },
};

/** Sends a wrong message after a reset; it must be answered with an error of this code. */
function judgeRefusal(
  subject: Subject,
  message: JsonObject | string,
  code: string,
  flawOf: (errors: unknown) => string | null = () => null,
): Promise<Finding | string | null> {
  return subject.withSession(async (socket) => {
    await socket.reset(subject.options.resetOptions);
    const reply = await socket.ask(message);
    const actual = reply.type === 'error' ? at(reply, 'data', 'code') : reply.type;
    if (actual !== code) return { passed: false, expected: code, actual: actual ?? null };
    if (typeof at(reply, 'data', 'message') !== 'string') return 'the error has no message';
    const flaw = flawOf(at(reply, 'data', 'errors'));
    if (flaw !== null) return flaw;
    return socket.state().then(
      () => null,
      (error: Error) => `after the error, ${error.message}`,
    );
  });
}

async function withUnknownKey(subject: Subject): Promise<JsonObject> {
  return { type: 'step', data: { ...(await subject.action()), [UNKNOWN_KEY]: 1 } };
}

/** A valid action with one value changed so that the schema refuses it; `undefined` when the schema takes anything. */
async function wrongAction(subject: Subject): Promise<JsonObject | undefined> {
  const schema = await subject.schema('action');
  const check = schemaCheck(schema);
  const action = await subject.action();
  const properties = isJsonObject(schema.properties) ? Object.keys(schema.properties) : [];
  return properties
    .filter((name) => name !== 'metadata')
    .flatMap((name) => ODD_VALUES.map((value) => ({ ...action, [name]: value })))
    .find((wrong) => check(wrong) !== null);
}

/** Checks of a full server: its refusal, and its recovery. */
export const CAPACITY_CHECKS: Checks = {
  capacity_refusal: whenFull(async (_, subject) => {
    const reply = await refused(subject, (socket) => socket.next());
    const { code, active_sessions: active, max_sessions: most } = (at(reply, 'data') ?? {}) as JsonObject;
    if (reply.type !== 'error' || code !== 'CAPACITY_REACHED') return `got ${shown(reply)}`;
    if (typeof active !== 'number' || typeof most !== 'number') {
      return 'the error has no active_sessions and max_sessions';
    }
    return { passed: true, details: `${active} of ${most} sessions` };
  }),
  capacity_refusal_readable: whenFull((_, subject) =>
    refused(subject, async (socket) => {
      await Promise.race([socket.closed, sleep(CLOSES_AT_ONCE_MS)]);
      return socket.isClosed && 'the connection is closed at once: such a client sees nothing but that';
    }),
  ),
  sessions_released: whenFull(async (sockets, subject) => {
    await Promise.all(sockets.map((socket) => socket.vanish()));
    return subject.withSession(async () => null);
  }),
};

/** Uses a socket that a full server refuses and that nothing was sent on. */
async function refused<T>(subject: Subject, use: (socket: InspectionSocket) => Promise<T>): Promise<T> {
  const socket = await subject.connect();
  return use(socket).finally(() => socket.close());
}

/** The run of a check with as many sessions open as the server gives. It does not apply where that are too many to open. */
function whenFull(judge: (sockets: InspectionSocket[], subject: Subject) => ReturnType<Run>): Run {
  return async (subject) => {
    const { mostSessions } = subject.options;
    const sockets: InspectionSocket[] = [];
    try {
      for (let isFull = false; !isFull; ) {
        if (sockets.length >= mostSessions)
          return notApplicable(`the server has room for ${mostSessions} sessions; --sessions opens more`);
        const socket = await subject.connect();
        sockets.push(socket);
        isFull = await socket.ask({ type: 'state' }).then(
          ({ type }) => type === 'error',
          (error) => {
            if (socket.isClosed) return true;
            throw error;
          },
        );
      }
      return await judge(sockets, subject);
    } finally {
      for (const socket of sockets.toReversed()) await socket.close();
    }
  };
}
