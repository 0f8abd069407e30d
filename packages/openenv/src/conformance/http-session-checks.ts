import { isJsonObject, type JsonObject } from '../json/json-object.ts';
import { type Check, type Finding, failed, notApplicable, PASSED, unless } from './check.ts';
import { at, shown } from './foreign-json.ts';
import { EPISODE_ID } from './play.ts';
import type { Answer, Subject } from './subject.ts';

/** Episodes over HTTP, where the server has them. */
export const HTTP_SESSION_CHECKS: readonly Check[] = [
  {
    id: 'http_reset',
    description: 'POST /reset answers 200 with an observation, also without a body',
    required: true,
    run: (subject) =>
      inSimulation(subject, async () => {
        const answers = [
          await subject.post('reset', { seed: 1, ...subject.options.resetOptions }),
          await subject.fetch('reset', { method: 'POST' }),
        ];
        return unless(answers.map(observationFlaw).find((flaw) => flaw !== null));
      }),
  },
  {
    id: 'http_step',
    description: 'POST /step answers 200 with an observation, or 409 when it wants a reset first',
    required: true,
    run: (subject) =>
      inSimulation(subject, async () => {
        const reset = await subject.post('reset', { ...subject.options.resetOptions });
        const answer = await subject.post('step', stepBody(reset, await subject.action()));
        return unless(answer.status === 409 ? null : observationFlaw(answer));
      }),
  },
  {
    id: 'http_state',
    description: 'GET /state answers 200 with episode_id and step_count',
    required: true,
    run: (subject) =>
      inSimulation(subject, async () => {
        const { status, body } = await subject.fetch('state', { method: 'GET' });
        const fits = status === 200 && isJsonObject(body) && 'episode_id' in body && 'step_count' in body;
        return unless(fits ? null : `got ${status} ${shown(body)}`);
      }),
  },
  {
    id: 'http_stateful',
    description: 'A step over HTTP goes on from the reset before it',
    required: false,
    run: (subject) =>
      inSimulation(subject, async () => {
        const body = { episode_id: EPISODE_ID, ...subject.options.resetOptions };
        const reset = await subject.post('reset', body);
        const session = at(reset.body, 'session_id');
        await subject.post('step', stepBody(reset, await subject.action()));
        const query = typeof session === 'string' ? `?session_id=${encodeURIComponent(session)}` : '';
        const { body: state } = await subject.fetch(`state${query}`, { method: 'GET' });
        const expected = { episode_id: EPISODE_ID, step_count: 1 };
        const actual = { episode_id: at(state, 'episode_id'), step_count: at(state, 'step_count') };
        const passed = actual.episode_id === EPISODE_ID && actual.step_count === 1;
        return { passed, expected, actual };
      }),
  },
  {
    id: 'http_validation_errors',
    description: 'A step without an action, bad JSON and a negative seed are answered with 422 and details',
    required: true,
    run: (subject) =>
      inSimulation(subject, async () => {
        const answers = {
          'POST /step {}': await subject.post('step', {}),
          'POST /step {': await subject.post('step', '{'),
          'POST /reset {"seed":-1}': await subject.post('reset', { seed: -1 }),
        };
        for (const [request, answer] of Object.entries(answers)) {
          if (!isValidationError(answer)) {
            return failed(`${request} was answered with ${answer.status} ${shown(answer.body)}`);
          }
        }
        return PASSED;
      }),
  },
  {
    id: 'http_unknown_action_key_refused',
    description: 'A key that the action schema does not have is answered with 422 over HTTP too',
    required: true,
    run: (subject) =>
      inSimulation(subject, async () => {
        if ((await subject.schema('action')).additionalProperties !== false) {
          return notApplicable('the action schema allows further keys');
        }
        const action = { ...(await subject.action()), unknown_key_of_servegym: 1 };
        const answer = await subject.post('step', { action });
        return unless(isValidationError(answer) ? null : `got ${answer.status} ${shown(answer.body)}`);
      }),
  },
];

async function inSimulation(subject: Subject, judge: () => Promise<Finding>): Promise<Finding> {
  if ((await subject.mode()) === 'production') {
    return notApplicable('the server is in production mode and has no /reset, /step and /state');
  }
  return judge();
}

/** A server that names the session is asked for it; one that does not, knows its caller or nobody. */
function stepBody({ body }: Answer, action: JsonObject): JsonObject {
  const session = at(body, 'session_id');
  return typeof session === 'string' ? { action, session_id: session } : { action };
}

function observationFlaw({ status, body }: Answer): string | null {
  const fits =
    status === 200 && isJsonObject(at(body, 'observation')) && typeof at(body, 'done') === 'boolean';
  return fits ? null : `got ${status} ${shown(body)}`;
}

function isValidationError({ status, body }: Answer): boolean {
  const detail = at(body, 'detail');
  return status === 422 && Array.isArray(detail) && detail.length > 0;
}
