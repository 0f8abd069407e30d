import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import { at, type Check, type Finding, inSession, must, notApplicable, should, shown } from './check.ts';
import { type Subject, schemaCheck } from './subject.ts';

/** No action has such a key. */
const UNKNOWN_KEY = 'unknown_key_of_servegym';
/** Values of which each schema but the loosest refuses one. */
const ODD_VALUES: readonly unknown[] = [{}, [], 'text', -1e9, true, null];

/** Checks of the answers to wrong messages. */
export const ERROR_CHECKS: readonly Check[] = [
  must(
    'invalid_json_refused',
    'A message that is not JSON is answered with the error INVALID_JSON',
    (subject) => judgeRefusal(subject, 'oops', 'INVALID_JSON'),
  ),
  must(
    'unknown_type_refused',
    'A message of an unknown type is answered with the error UNKNOWN_TYPE',
    (subject) => judgeRefusal(subject, { type: 'nope' }, 'UNKNOWN_TYPE'),
  ),
  must(
    'missing_action_refused',
    'A step without an action is answered with the error VALIDATION_ERROR',
    (subject) => judgeRefusal(subject, { type: 'step' }, 'VALIDATION_ERROR'),
  ),
  must(
    'unknown_action_key_refused',
    'A key that the action schema does not have is refused, and named',
    async (subject) => {
      if ((await subject.schema('action')).additionalProperties !== false) {
        return notApplicable('the action schema allows further keys');
      }
      return judgeRefusal(subject, await withUnknownKey(subject), 'VALIDATION_ERROR', (errors) =>
        JSON.stringify(errors ?? null).includes(UNKNOWN_KEY)
          ? null
          : `the \`errors\` do not name the key: ${shown(errors)}`,
      );
    },
  ),
  must(
    'wrong_action_value_refused',
    'A value that the action schema does not allow is refused',
    async (subject) => {
      const data = await wrongAction(subject);
      if (!data) return notApplicable('the action schema allows anything');
      return judgeRefusal(subject, { type: 'step', data }, 'VALIDATION_ERROR');
    },
  ),
  must(
    'paired_after_errors',
    'After errors the session goes on, and each reply still belongs to its message',
    inSession(async (socket, subject) => {
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
  ),
  should(
    'odd_frames_answered',
    'A list and a binary frame are answered with an error, and the server lives on',
    async (subject) => {
      for (const frame of [[], new TextEncoder().encode('{"type":"state"}')]) {
        const reply = await subject.withSession((socket) => socket.ask(frame));
        if (reply.type !== 'error') return `${shown(frame)} was answered with ${shown(reply)}`;
      }
      return null;
    },
  ),
];

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
