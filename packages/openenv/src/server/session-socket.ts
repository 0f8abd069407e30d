import type { RawData, WebSocket } from 'ws';
import { EnvironmentError, type StepResult } from '../definition.ts';
import { isJsonObject, type JsonObject } from '../json/json-object.ts';
import { readJson } from '../json/read-json.ts';
import { toolCallResult } from '../mcp/environment-tools.ts';
import type { JsonRpcEndpoint } from '../mcp/json-rpc-endpoint.ts';
import type { ErrorData } from '../protocol/web-socket-message.ts';
import type { Session } from '../sessions/session.ts';
import { SessionStoreError, SessionTakenError } from '../sessions/session-errors.ts';
import type { ActionReader } from '../validation/action-reader.ts';
import { excerpt } from '../validation/excerpt.ts';
import { InvalidInputError } from '../validation/invalid-input-error.ts';
import type { ResetOptionsReader } from '../validation/reset-options-reader.ts';
import { answerInOrder } from './answer-in-order.ts';

export interface SessionSocketParts {
  readonly readAction: ActionReader<unknown>;
  readonly readResetOptions: ResetOptionsReader;
  readonly jsonRpc: JsonRpcEndpoint;
  /** Whether `list_tools` and `call_tool` may come as steps: yes, unless the environment's actions have a `type`. */
  readonly toolsAsSteps: boolean;
  /** The client has said that it needs its session no more. */
  onFarewell(socket: WebSocket): void;
}

/** Speaks OpenEnv's session protocol on an accepted socket: one message out for each message in, in order. */
export function serveSession(socket: WebSocket, session: Session, parts: SessionSocketParts): void {
  // What could not be kept must not be played on; the client can resume the session.
  const isOver = () => session.failure !== null;
  answerInOrder(
    socket,
    (data, isBinary) => {
      try {
        const outcome = answer(data, isBinary, socket, session, parts);
        return outcome instanceof Promise ? outcome.catch(errorMessage) : outcome;
      } catch (error) {
        return errorMessage(error);
      }
    },
    isOver,
  );
}

/** The text to send back, or `null` for `close`, which has no reply. */
function answer(
  data: RawData,
  isBinary: boolean,
  socket: WebSocket,
  session: Session,
  parts: SessionSocketParts,
): string | null | Promise<string> {
  if (isBinary) throw invalid([], 'Input should be a text frame, not a binary one');
  const reading = readJson(data.toString());
  if (!reading.ok) return errorText({ message: `Invalid JSON: ${reading.message}`, code: 'INVALID_JSON' });
  const message = reading.value;
  if (!isJsonObject(message)) throw invalid([], 'Input should be an object with a `type`', message);
  switch (message.type) {
    case 'step': {
      const payload = envelope(message, 'required');
      if (parts.toolsAsSteps && (payload.type === 'call_tool' || payload.type === 'list_tools')) {
        return toolStep(payload, session, parts.jsonRpc);
      }
      return observationMessage(session.step(parts.readAction(payload)));
    }
    case 'reset':
      return observationMessage(session.reset(parts.readResetOptions(envelope(message, 'optional'))));
    case 'state': {
      envelope(message, 'forbidden');
      const state = session.state();
      return state instanceof Promise ? state.then(stateMessage) : stateMessage(state);
    }
    case 'mcp':
      return parts.jsonRpc
        .answer(envelope(message, 'required'), session)
        .then((response) => JSON.stringify({ type: 'mcp', data: response }));
    case 'close':
      envelope(message, 'forbidden');
      parts.onFarewell(socket);
      socket.close(1000);
      return null;
    default:
      return errorText({
        message: `Unknown message type: ${String(excerpt(message.type ?? ''))}`,
        code: 'UNKNOWN_TYPE',
      });
  }
}

function envelope(message: JsonObject, data: 'required' | 'optional' | 'forbidden'): JsonObject {
  for (const key in message) {
    if (key !== 'type' && (key !== 'data' || data === 'forbidden')) {
      throw new InvalidInputError([
        {
          type: 'extra_forbidden',
          loc: [key],
          msg: 'Extra inputs are not permitted',
          input: excerpt(message[key]),
        },
      ]);
    }
  }
  const { data: payload } = message;
  if (payload === undefined) {
    if (data !== 'required') return {};
    throw new InvalidInputError([
      { type: 'missing', loc: ['data'], msg: 'Field required', input: excerpt(message) },
    ]);
  }
  if (!isJsonObject(payload)) throw invalid(['data'], 'Input should be a valid dictionary', payload);
  return payload;
}

function invalid(loc: string[], msg: string, input: unknown = null): InvalidInputError {
  return new InvalidInputError([{ type: 'dict_type', loc, msg, input: excerpt(input) }]);
}

function observationMessage(
  result: StepResult<object> | Promise<StepResult<object>>,
): string | Promise<string> {
  return result instanceof Promise ? result.then(observationText) : observationText(result);
}

function observationText({ observation, reward, done, metadata }: StepResult<object>): string {
  return `{"type":"observation","data":${JSON.stringify({ observation, reward, done, metadata })}}`;
}

function stateMessage(state: object): string {
  return `{"type":"state","data":${JSON.stringify(state)}}`;
}

/** How clients before OpenEnv 0.4 reach tools: as actions of a reserved `type`. */
async function toolStep(payload: JsonObject, session: Session, jsonRpc: JsonRpcEndpoint): Promise<string> {
  const reply = (observation: object) => observationText({ observation, reward: null, done: false });
  if (payload.type === 'list_tools') return reply({ tools: jsonRpc.listTools() });
  const name = String(payload.tool_name ?? '');
  const failed = (type: string, message: string) =>
    reply({ tool_name: name, result: null, error: { error_type: type, message } });
  if (!jsonRpc.hasTool(name)) return failed('tool_not_found', `Unknown tool: '${name.slice(0, 100)}'`);
  try {
    const value = await jsonRpc.callTool(name, payload.arguments ?? {}, session);
    return reply({ tool_name: name, result: toolCallResult(value), error: null });
  } catch (error) {
    const type = error instanceof InvalidInputError ? 'invalid_args' : 'execution_error';
    return failed(type, (error as Error).message);
  }
}

function errorMessage(error: unknown): string {
  if (error instanceof InvalidInputError) {
    return errorText({
      message: `Invalid message: ${error.message}`,
      code: 'VALIDATION_ERROR',
      errors: error.issues,
    });
  }
  if (error instanceof SessionStoreError || error instanceof SessionTakenError) {
    return errorText({ message: error.message, code: 'SESSION_ERROR' });
  }
  return errorText({
    message: (error as Error).message,
    code: 'EXECUTION_ERROR',
    ...(error instanceof EnvironmentError && { reason: error.code }),
  });
}

export function errorText(data: ErrorData): string {
  return JSON.stringify({ type: 'error', data });
}
