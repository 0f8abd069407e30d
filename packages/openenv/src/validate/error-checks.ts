import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import {
  at,
  type Check,
  CheckFailure,
  type Finding,
  failed,
  notApplicable,
  PASSED,
  shown,
  unless,
} from './check.ts';
import { type InspectionSocket, type Subject, schemaCheck } from './subject.ts';

/** No action has such a key. */
const UNKNOWN_KEY = 'unknown_key_of_servegym';
/** Values of which each schema but the loosest refuses one. */
const ODD_VALUES: readonly unknown[] = [{}, [], 'text', -1e9, true, null];

/** Checks of the answers to wrong messages. */
export const ERROR_CHECKS: readonly Check[] = [
  {
    id: 'invalid_json_refused',
    description: 'A message that is not JSON is answered with the error INVALID_JSON',
    required: true,
    run: (subject) => judgeRefusal(subject, () => 'oops', 'INVALID_JSON'),
  },
  {
    id: 'unknown_type_refused',
    description: 'A message of an unknown type is answered with the error UNKNOWN_TYPE',
    required: true,
    run: (subject) => judgeRefusal(subject, () => ({ type: 'nope' }), 'UNKNOWN_TYPE'),
  },
  {
    id: 'missing_action_refused',
    description: 'A step without an action is answered with the error VALIDATION_ERROR',
    required: true,
    run: (subject) => judgeRefusal(subject, () => ({ type: 'step' }), 'VALIDATION_ERROR'),
  },
  {
    id: 'unknown_action_key_refused',
    description: 'A key that the action schema does not have is refused, and named',
    required: true,
    async run(subject) {
      if ((await subject.schema('action')).additionalProperties !== false) {
        return notApplicable('the action schema allows further keys');
      }
      return judgeRefusal(subject, withUnknownKey, 'VALIDATION_ERROR', (data) =>
        JSON.stringify(at(data, 'errors') ?? null).includes(UNKNOWN_KEY)
          ? null
          : `the \`errors\` do not name the key: ${shown(at(data, 'errors'))}`,
      );
    },
  },
  {
    id: 'wrong_action_value_refused',
    description: 'A value that the action schema does not allow is refused',
    required: true,
    async run(subject) {
      const wrong = await wrongAction(subject);
      if (!wrong) return notApplicable('the action schema allows anything');
      const message = { type: 'step', data: wrong };
      return judgeRefusal(subject, () => message, 'VALIDATION_ERROR');
    },
  },
  {
    id: 'paired_after_errors',
    description: 'After errors the session goes on, and each reply still belongs to its message',
    required: true,
    async inSession(socket, subject) {
      await socket.reset(subject.options.resetOptions);
      for (const message of ['oops', { type: 'nope' }, { type: 'step' }, await withUnknownKey(subject)]) {
        const reply = await socket.ask(message);
        if (reply.type !== 'error' && reply.type !== 'observation') {
          return failed(`${shown(message)} was answered with ${shown(reply)}`);
        }
        await socket.state();
      }
      await socket.step(await subject.action());
      const { unread } = socket;
      return unless(unread.length > 0 && `a message came unasked: ${unread[0]?.slice(0, 200)}`);
    },
  },
  {
    id: 'odd_frames_answered',
    description: 'A list and a binary frame are answered with an error, and the server lives on',
    required: false,
    async run(subject) {
      for (const frame of [[], new TextEncoder().encode('{"type":"state"}')]) {
        const reply = await subject.withSession((socket) => socket.ask(frame));
        if (reply.type !== 'error') return failed(`${shown(frame)} was answered with ${shown(reply)}`);
      }
      return PASSED;
    },
  },
];

/** Sends a wrong message after a reset; it must be answered with an error of this code. */
async function judgeRefusal(
  subject: Subject,
  messageFor: (subject: Subject) => JsonObject | string | Promise<JsonObject | string>,
  code: string,
  furtherFlaw: (data: unknown) => string | null = () => null,
): Promise<Finding> {
  return subject.withSession(async (socket) => {
    await socket.reset(subject.options.resetOptions);
    const reply = await socket.ask(await messageFor(subject));
    const actual = reply.type === 'error' ? at(reply, 'data', 'code') : reply.type;
    if (actual !== code) return { passed: false, expected: code, actual: actual ?? null };
    const data = at(reply, 'data');
    if (typeof at(data, 'message') !== 'string') return failed('the error has no message');
    const flaw = furtherFlaw(data) ?? (await refusesToGoOn(socket));
    return unless(flaw);
  });
}

async function refusesToGoOn(socket: InspectionSocket): Promise<string | null> {
  try {
    await socket.state();
    return null;
  } catch (error) {
    if (error instanceof CheckFailure) return `after the error, ${error.message}`;
    throw error;
  }
}

async function withUnknownKey(subject: Subject): Promise<JsonObject> {
  return { type: 'step', data: { ...(await subject.action()), [UNKNOWN_KEY]: 1 } };
}

/** A valid action with one value changed so that the schema refuses it; `null` when the schema takes anything. */
async function wrongAction(subject: Subject): Promise<JsonObject | null> {
  const schema = await subject.schema('action');
  const check = schemaCheck(schema);
  const action = await subject.action();
  const properties = isJsonObject(schema.properties) ? Object.keys(schema.properties) : [];
  for (const property of properties.filter((name) => name !== 'metadata')) {
    for (const value of ODD_VALUES) {
      const wrong = { ...action, [property]: value };
      if (check(wrong) !== null) return wrong;
    }
  }
  return null;
}
